// Work in steps, each of which needs all of the step before: one fork for all steps, and a
// barrier of about 0.15 us between two of them.
//
// The chunks of a step are cut into one region a thread, the same in every step, and a thread
// goes through its own region forth in one step and back in the next: what its caches kept
// last is what it needs first. With a region a little larger than the cache, least recently
// used eviction would otherwise throw away every line just before its next use. A thread that
// has done its region helps with others' once they are late. Nobody waits for a thread that
// has not arrived: whoever is there does all of the work.
#pragma once

#include <cstdint>

#include "cc/base/function_ref.h"
#include "cc/base/threads/thread_pool.h"

namespace bd {

using StepBody = FunctionRef<void(int64_t step, int64_t chunk, int thread)>;

// Runs body(step, chunk, thread) once for every step in [0, num_steps) and chunk in
// [0, num_chunks). All bodies of a step happen after all of the step before. Otherwise as
// ThreadPool::ParallelFor.
void ParallelSteps(ThreadPool& pool, int64_t num_steps, int64_t num_chunks, StepBody body);

}  // namespace bd
