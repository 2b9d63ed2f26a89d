// A limit on the threads of calls, for programs that divide the machine's threads among several libraries.
#pragma once

namespace forestvm {

/// Lets every later call of this thread use at most `limit` threads of the host, the calling one included, whatever its
/// predictor was loaded for. 0, as at first, is no limit.
void limit_threads(unsigned limit);

/// Returns the calling thread's limit; 0 if it has none.
unsigned thread_limit();

}  // namespace forestvm
