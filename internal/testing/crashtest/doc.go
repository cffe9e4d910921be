// Package crashtest kills real roost processes and judges what they leave behind. Its tests are the rows of the
// table in docs/crash-safety.md, "killed during X, on resume Y"; command crashloop uses the same parts for kills at
// random moments.
//
// A Bench is one set of folders and one task's scripted model. A child dies by SIGKILL at a failpoint or when the
// caller kills it; Look reads what is on the disk without changing it, and the Check functions compare two looks, or
// a look with the output of the dead child.
//
// SIGKILL ends a process, not the machine: what the kernel had in its cache survives. The fault injection of
// journal/filelog covers the loss of that cache.
package crashtest
