/* Calls other engines' C entry points, so that the measured time does not include Python's. In: a function
 * whose parameters are integers and pointers only, and sets of arguments for it, one set for each batch of rows. Each
 * argument is given as 64 bits and twelve of them are always passed: under the calling conventions of 64-bit Linux (x86
 * and ARM) a function ignores arguments beyond its own. */
#include <stddef.h>
#include <stdint.h>

enum { kArguments = 12 };
typedef uint64_t word;
typedef int entry(word, word, word, word, word, word, word, word, word, word, word, word);

/* Makes `calls` calls with the sets from `first` on, starting again after the last set. */
void make_calls(entry *function, const word *arguments, size_t sets, size_t first, size_t calls) {
  size_t set = first % sets;
  for (size_t i = 0; i < calls; ++i) {
    const word *a = arguments + set * kArguments;
    function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    set = set + 1 == sets ? 0 : set + 1;
  }
}
