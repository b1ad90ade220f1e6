/* fake.h - the inside of the double of libcuda: what its files share. fakecuda.c says what it is for. */
#ifndef HG_TESTS_FAKE_H
#define HG_TESTS_FAKE_H

#include "fakecuda.h"

#include "backend/cuda/driver.h"
#include "ptx_machine.h"

#include <pthread.h>

#define SYMBOL(name, parameters) __attribute__((visibility("default"))) int name parameters;
#define SYMBOL_OPTIONAL SYMBOL
#include "backend/cuda/symbols.def"
#undef SYMBOL_OPTIONAL
#undef SYMBOL

enum { MAX_PARAMETER_BYTES = 4352, MAX_DEVICES = 4 };
#define DEVICE_BIT (UINT64_C(1) << 62)

/* ---- objects ----------------------------------------------------------------------------------------------------- */

typedef enum object_kind {
  CONTEXT,
  STREAM,
  EVENT,
  MEMORY,
  PINNED,
  POOL,
  LINK,
  MODULE,
  FUNCTION,
  GRAPH,
  EXECUTABLE,
  KIND_COUNT
} object_kind;

typedef struct object {
  struct object *next;
  object_kind kind;
  int device;          /* whose context it belongs to */
  int dead;            /* given back; the shell stays while there is a context, so that no new handle is like it */
  uint8_t *bytes;      /* of memory, pinned memory, the text of a link or an image */
  size_t byte_count;
  struct object *pool; /* of memory */
  struct object *module;
  unsigned dynamic_bytes; /* of shared memory, that a function may be launched with */
  struct spare *spares; /* of a pool: what was freed and is kept */
  uint64_t live_bytes, threshold; /* of a pool: in use; reserved bytes above it are released by waits */
  int unborn;          /* of memory from a pool: its stream has not come to the allocation */
  struct object *stream;     /* of an event: where it was recorded last, and behind which work */
  uint64_t recorded;
  int untimed;
  double time;               /* when that was reached */
  unsigned questions;        /* of a stream with work left, whether it is done */
  struct work *captured, **last_captured; /* of a stream that captures (the latter not NULL), and of graphs */
  ptx_module *program;
  char name[128];
  int *log_options;
  void **log_values;
  unsigned log_count;
} object;

/* Memory that a pool keeps: for the stream that freed it at once, for others when that stream has come to the free. */
typedef struct spare {
  struct spare *next;
  const object *stream; /* NULL: anybody's */
  uint64_t number, byte_count;
} spare;

/* Work that a stream has been given. */
typedef struct work {
  struct work *next;
  enum { COPY, FILL, RUN, CALL, ALLOCATE, FREE, WAIT, RECORD } kind;
  uint64_t number;
  object *stream;
  uint8_t *to;
  const uint8_t *from;
  uint8_t *held; /* a copy of unpinned host memory */
  size_t byte_count, value_bytes;
  uint32_t value;
  size_t rows, pitch;     /* of a fill: rows of byte_count bytes */
  object *function;       /* or the memory that is allocated or freed, or the event, or the stream waited for */
  uint64_t wait_number;   /* up to there */
  void (*call)(const void *parameters); /* of another double */
  uint32_t grid[3], block[3], shared_bytes;
  uint8_t parameters[MAX_PARAMETER_BYTES];
} work;

/* Under the lock. */
typedef struct fake_state {
  object *objects, *buried;
  uint64_t work_given, live_bytes[MAX_DEVICES];
  uint64_t mapped_bytes;        /* for allocations that no kept memory was found for */
  object *primary[MAX_DEVICES]; /* contexts */
  object *standard[MAX_DEVICES]; /* their default streams, whose handle is 1 */
  int sticky_error[MAX_DEVICES]; /* of the context there */
  char fail_setting[256];       /* FAKECUDA_FAIL as it was read last */
} fake_state;

extern pthread_mutex_t fake_lock;
extern fake_state fake;
/* That of the current context; CUDA_OK where there is none. */
int fake_sticky(void);
extern _Thread_local object *fake_current; /* context */

/* A violation. */
void fake_blame(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t fake_setting(const char *name, uint64_t otherwise);
object *fake_add(object_kind kind, size_t byte_count);
void fake_bury(object *o);
int fake_is_live(const object *o, object_kind kind, const char *caller);

/* The host's bytes behind a range of a device's memory; NULL, and a violation, where there are none. Work that is
 * pending may still touch what is freed behind it. */
uint8_t *fake_reach_in(cuda_address address, size_t byte_count, const char *caller, int device, int pending);
uint8_t *fake_reach(cuda_address address, size_t byte_count, const char *caller); /* of the current device */
object *fake_pinned_at(const void *memory);

/* ---- streams (fake_stream.c) ------------------------------------------------------------------------------------- */

/* Appends to what the stream has been given or, while it captures, to its graph. */
work *fake_give(void *stream);
/* Does a stream's work (NULL: that of all) up to a number, and what it waits for. */
void fake_wait_for(const object *stream, uint64_t number);
void fake_free_captured(object *o);
int fake_is_done(const object *stream, uint64_t number); /* all that the stream was given up to there */
/* After a wait: a pool gives back what it keeps above its threshold. */
void fake_trim_pools(void);
void fake_forget_spares(object *pool);

/* ---- what every function begins and ends with -------------------------------------------------------------------- */

int fake_begin(const char *caller, int needs_context);

#define ENTER(needs_context)                                \
  do {                                                      \
    pthread_mutex_lock(&fake_lock);                         \
    int begin_error = fake_begin(__func__, needs_context);  \
    if (begin_error != CUDA_OK) LEAVE(begin_error);         \
  } while (0)
#define LEAVE(result)                  \
  do {                                 \
    int leave_result = (result);       \
    pthread_mutex_unlock(&fake_lock);  \
    return leave_result;               \
  } while (0)
#define EXPECT(condition)                                    \
  do {                                                       \
    if (!(condition)) {                                      \
      fake_blame("%s: not true: %s", __func__, #condition);  \
      LEAVE(1);                                              \
    }                                                        \
  } while (0)
#define EXPECT_LIVE(o, kind)                                       \
  do {                                                             \
    if (!fake_is_live((object *)(o), kind, __func__)) LEAVE(400);  \
  } while (0)
#define EXPECT_STREAM(stream)                                                                          \
  do {                                                                                                 \
    if (stream == (void *)1 && fake_current != NULL) stream = fake.standard[fake_current->device];    \
    EXPECT_LIVE(stream, STREAM);                                                                       \
  } while (0)
#define EXPECT_NO_CAPTURE(stream) EXPECT(((object *)(stream))->last_captured == NULL)

#endif
