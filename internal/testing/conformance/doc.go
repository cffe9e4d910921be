// Package conformance runs a package's tests over data that is kept outside the
// repository: conformance vectors, and a corpus of real task folders.
//
// Both are found by environment variables. Not set, the test is skipped: a clone
// without the data must pass. Set, the data must be there: an absent family, an
// empty file, a line that is no case or a corpus without a task fails the test,
// because a run that looked at nothing must not look like a success.
//
// Cases are held as raw JSON. encoding/json would turn lone surrogates, which
// several families are about, into U+FFFD. The values are decoded by package
// esjson, whose own test compares that with encoding/json.
package conformance
