// Package crashtest kills real roost processes and judges what they leave behind.
// Its tests are the rows of the README's table "killed during X, on resume Y";
// command crashloop uses the same parts for kills at random moments.
//
// A Bench is one set of folders and one task's scripted model. A child dies by
// SIGKILL at a failpoint or when the caller says so; Look reads what is on the
// disk without changing it, and the Check functions compare two looks, or a look
// with what the dead child had printed.
//
// SIGKILL ends a process, not the machine: what the kernel had in its cache
// survives. Losing that is what the fault injection of journal/filelog is for.
package crashtest
