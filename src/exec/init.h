#pragma once

namespace lictor::exec {

/// If this process is PID 1, as in a container: returns in a child, which does the work. PID 1
/// itself forwards signals to that child, reaps orphans, and ends with the child's exit code. If
/// the child is killed, its warden first gets time to end the jobs and release the locks. Call
/// before there is any thread. If this process is not PID 1, does nothing.
void leave_pid_1();

}  // namespace lictor::exec
