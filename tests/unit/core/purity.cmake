# cmake -DCORE=<src/core> -P purity.cmake: the core is told the time and everything else; it includes
# nothing that could find out by itself, and nothing of the layers above it. What is unordered is to
# look things up in: its order would be the library's, not the core's.
set(allowed_system
  algorithm array cmath compare cstddef cstdint deque functional initializer_list iterator map memory optional set
  span string string_view tuple unordered_map utility variant vector)
set(allowed_own base/assert.h base/id.h base/random.h base/siphash.h lictor/time.h)

file(GLOB sources ${CORE}/*.h ${CORE}/*.cpp)
list(LENGTH sources count)
if(count LESS 10)
  message(FATAL_ERROR "${CORE}: expected the sources of the core, found ${count} files")
endif()

foreach(source ${sources})
  file(STRINGS ${source} includes REGEX "^[ \t]*#[ \t]*include")
  foreach(line ${includes})
    if(line MATCHES "<([^>]+)>")
      list(FIND allowed_system "${CMAKE_MATCH_1}" found)
    elseif(line MATCHES "\"core/")
      set(found 0)
    elseif(line MATCHES "\"([^\"]+)\"")
      list(FIND allowed_own "${CMAKE_MATCH_1}" found)
    else()
      set(found -1)
    endif()
    if(found EQUAL -1)
      message(SEND_ERROR "${source}: ${line}: not for the core, which is pure")
    endif()
  endforeach()
endforeach()
