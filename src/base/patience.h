/* patience.h - a call that takes long asks its caller now and then whether it is to go on. */
#ifndef HG_BASE_PATIENCE_H
#define HG_BASE_PATIENCE_H

#include "base/base_tuning.h"
#include "base/error.h"
#include "base/os.h"

#include <stdatomic.h>

/* For one call. */
typedef struct hg_patience {
  hg_ask_callback ask; /* NULL: nobody is asked */
  void *user;
  uint64_t next; /* when to ask */
  const atomic_uint *cancels; /* the call is to end when this is not `cancel_number`; NULL: nobody says so */
  uint32_t cancel_number;
} hg_patience;

static inline hg_patience hg_patience_of(hg_ask_callback ask, void *user) {
  return (hg_patience){.ask = ask, .user = user, .next = ask != NULL ? hg_time_ns() + HG_ASK_NS : 0};
}

/* HG_CANCELLED: the call is to end. No lock is held here: the caller may use the library before it answers. */
static inline hg_status hg_patience_ask(hg_patience *patience) {
  if (patience == NULL) return HG_OK;
  if (patience->cancels != NULL && atomic_load(patience->cancels) != patience->cancel_number)
    return hg_fail(HG_CANCELLED, "hg_cancel has ended this call");
  if (patience->ask == NULL || hg_time_ns() < patience->next) return HG_OK;
  int is_over = patience->ask(patience->user);
  patience->next = hg_time_ns() + HG_ASK_NS;
  return is_over ? hg_fail(HG_CANCELLED, "the caller was asked whether this call is to go on, and has ended it")
                 : HG_OK;
}

/* The same after a sleep for a fraction of the time since `begun`. */
static inline hg_status hg_patience_sleep(hg_patience *patience, uint64_t begun) {
  uint64_t time = (hg_time_ns() - begun) / HG_SLEEP_PART;
  hg_sleep(time < HG_SLEEP_NS ? time : HG_SLEEP_NS);
  return hg_patience_ask(patience);
}

#endif
