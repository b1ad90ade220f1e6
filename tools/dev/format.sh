# ./dev format

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev format [--all] [FILE]...

Lays out C files: those named, else those that differ from the last commit. Lines over 120 columns are broken as .clang-format says;
what was laid out by hand and fits stays as it is. --all: clang-format decides about every line.
TEXT
  need clang-format=clang-format git=git python3=python3
  local all=() files=()
  [ "${1:-}" != --all ] || { all=(--all) && shift; }
  files=("$@")
  [ ${#files[@]} -gt 0 ] || mapfile -t files < <(changed_c_files)
  [ ${#files[@]} -gt 0 ] || { say "nothing has changed" && return; }
  python3 tools/format.py "${all[@]}" "${files[@]}"
}

changed_c_files() {
  {
    git diff --name-only --diff-filter=d HEAD -- '*.c' '*.h' 2>/dev/null || git ls-files -- '*.c' '*.h'
    git ls-files --others --exclude-standard -- '*.c' '*.h'
  } | sort -u
}
