// A CPU target that does what check_target_symbols.sh must find: it leaves a copy of an inline function for
// the linker to pick. It is compiled and never linked.
namespace forestvm::host {

__attribute__((noinline)) inline int leaked_to_everyone(int x) { return x + 1; }

namespace target_Leaky {

int entry(int x);
int entry(int x) { return leaked_to_everyone(x); }

}  // namespace target_Leaky
}  // namespace forestvm::host
