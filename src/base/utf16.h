/* utf16.h - Windows only: UTF-8 to UTF-16 and back; 0 where the text does not fit. */
#ifndef HG_BASE_UTF16_H
#define HG_BASE_UTF16_H

#include <windows.h>

static inline int hg_widen(const char *text, WCHAR *wide, int capacity) {
  return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, capacity) > 0;
}
static inline int hg_narrow(const WCHAR *wide, char *text, int capacity) {
  return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, text, capacity, NULL, NULL) > 0;
}

#endif
