/* g: compiled by tirlite.

   x: f32[n]
   y: f32[n], written
   c: i64
   n: at least 1

   Arrays are contiguous, their last axis fastest, but for those with strides, which count elements.
   They are aligned for their type; those that are written overlap no other. f16 and bf16 arrays hold
   the bits as uint16_t, bool ones bytes of 0 or 1. */
#ifndef G_H
#define G_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TIRLITE_ABI
#define TIRLITE_ABI 1

/* Runs iterations [first, end) as the given worker, and returns 0 or what stopped it. */
typedef int64_t (*tirlite_task)(void *closure, int64_t first, int64_t end, int64_t worker);

/* What a function needs of the program around it. Null, or one without `parallel`: loops run in the calling thread.

   `parallel` cuts iterations [0, count) into at most `chunks` stretches, runs the task on each, and returns when all
   are done: 0, or the result of the first stretch whose result is not 0. At a time, no two threads are the same
   worker; workers are numbered from 0 to below `workers`. */
typedef struct tirlite_ctx {
  uint32_t abi; /* TIRLITE_ABI */
  int64_t (*parallel)(void *pool, tirlite_task task, void *closure, int64_t count, int64_t workers, int64_t chunks);
  void *pool; /* handed to `parallel` */
} tirlite_ctx;

enum {
  TIRLITE_DONE = 0,
  TIRLITE_BAD_SIZE = -1,
  TIRLITE_BAD_CONTEXT = -2,
  TIRLITE_NO_ARENA = -3
};
#elif TIRLITE_ABI != 1
#error "this header goes with version 1 of the interface"
#endif

/* The most workers that a parallel loop asks for; g_arena_bytes counts them. */
#define G_WORKERS 2

/* 0, or a status that the function below puts into words. May be called by several threads, each with an
   arena of its own; the content of the arena does not matter. */
int32_t g(const tirlite_ctx *ctx, const float *x, float *y, int64_t c, int64_t n);

/* The bytes that the arena must have; -1 where they, or the sizes, are impossible. */
int64_t g_arena_bytes(int64_t c, int64_t n);

const char *g_message(int32_t status);

#ifdef __cplusplus
}
#endif
#endif
