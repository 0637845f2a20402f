# cpack runs this on the staged files before it packs them.

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/debian/changelog newest LIMIT_COUNT 1)
if(NOT newest MATCHES "^lictor \\(${CPACK_PACKAGE_VERSION}\\) ")
  message(FATAL_ERROR "debian/changelog: expected an entry of ${CPACK_PACKAGE_VERSION}, the version "
    "of include/lictor/version.h, at the top; found \"${newest}\"")
endif()

# Whatever umask the sources were checked out with.
execute_process(COMMAND chmod -R u=rwX,go=rX ${CPACK_TEMPORARY_DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)

# CPACK_STRIP_FILES leaves static libraries alone: 60 MB of debugging information.
file(GLOB_RECURSE archives ${CPACK_TEMPORARY_DIRECTORY}/*.a)
execute_process(
  COMMAND strip --strip-debug --remove-section=.comment --enable-deterministic-archives ${archives}
  COMMAND_ERROR_IS_FATAL ANY)
