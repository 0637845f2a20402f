#pragma once

namespace lictor::exec {

/// If this process is PID 1, as in a container: returns in a child of it, which does the work. PID
/// 1 itself passes on signals to that child, reaps the orphans that it inherits, and ends with the
/// code of the child. A warden that outlives its daemon may end its jobs and release its locks
/// first. Else does nothing. Call it before there is any thread.
void leave_pid_1();

}  // namespace lictor::exec
