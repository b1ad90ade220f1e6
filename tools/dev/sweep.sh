# ./dev sweep

SWEEP=$BUILD/release/tests/sweep/test_sweep

# What runs a case where its options say.
runner_of() {
  case " $* " in
    *" cuda "*) say "${ON_DOUBLE[@]}" ;;
    *" metal "*) say "${ON_METAL[@]}" ;;
    *) say env ;;
  esac
}

main() {
  help_if_asked "${1:-}" <<'TEXT'
Usage: ./dev sweep [--seed S] [--one-in N] [--launches N] [--route NAME]
       ./dev sweep --case N --seed S [--engine NAME[:ISA][+stream] | --backend cuda|metal]

The systematic sweep of memory safety: programs that access memory in every form, type and index (tests/sweep/forms.def), by
launches whose memory begins and ends at pages that nobody may read. Status, fault record and every byte are the reference
machine's, on every CPU engine of this machine, also with stores past the caches; then as PTX on a double of NVIDIA's driver
(./dev test-gpu has a piece of it on a GPU), and on simulated Metal.

All of it, 21,000 programs with 64 launches each, takes half an hour on two processors. --one-in N takes one program in N, others
with each seed; --launches N as many of each; --route the programs of one row of the table. A failure is printed with its case:
--case runs that alone.
TEXT
  need_build_tools
  need_release
  local options=("$@") runner status=0
  if [[ " $* " == *" --case "* ]]; then
    read -ra runner <<<"$(runner_of "$@")"
    "${runner[@]}" "$SWEEP" "$@"
    return
  fi
  [[ " $* " == *" --launches "* ]] || options+=(--launches 64)
  say "on the CPU"
  "$SWEEP" --processes "$JOBS" "${options[@]}" || status=1
  say "as PTX on the double of libcuda"
  "${ON_DOUBLE[@]}" "$SWEEP" --processes "$JOBS" "${options[@]}" --backend cuda || status=1
  if has_metal; then
    say "on simulated Metal"
    "${ON_METAL[@]}" "$SWEEP" --processes "$JOBS" "${options[@]}" --backend metal || status=1
  fi
  return $status
}
