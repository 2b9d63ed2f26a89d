// A reference to something callable, for calls that must not allocate: two pointers, no ownership.
#pragma once

#include <type_traits>
#include <utility>

namespace forestvm::host {

template <class Signature>
class FunctionRef;

template <class Return, class... Arguments>
class FunctionRef<Return(Arguments...)> {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>) FunctionRef(Callable& callable)
      : object_(&callable), call_([](void* object, Arguments... arguments) -> Return {
          return (*static_cast<Callable*>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  Return operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* object_;
  Return (*call_)(void*, Arguments...);
};

}  // namespace forestvm::host
