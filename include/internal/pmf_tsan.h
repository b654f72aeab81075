/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * ThreadSanitizer does not see that an rte_ring orders what it carries: its barriers are none of
 * C11's, and in RTS mode one side writes as 64 bits what the other reads as 32. These two say it:
 * give before an element is put in, take after one was got out. Without the sanitizer they are
 * nothing.
 */
#ifndef PMF_TSAN_H
#define PMF_TSAN_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PMF_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PMF_TSAN 1
#endif

#ifdef PMF_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define pmf_tsan_give(ring) __tsan_release((void *)(ring))
#define pmf_tsan_take(ring) __tsan_acquire((void *)(ring))
#else
#define pmf_tsan_give(ring) ((void)0)
#define pmf_tsan_take(ring) ((void)0)
#endif

#endif
