// Package archtest checks the shape of this repository: which package may import which, that every package has a
// comment about its purpose, that no file or name becomes a heap, and that nothing names the machine it was written
// on.
//
// CheckPage compares the table of packages in ARCHITECTURE.md with the tree, and CheckWalks the walks there with the
// code: every function that a walk names exists, and it calls the next one. CheckLinks follows the links between pages.
//
// Check works on any file tree, so that its own tests can show it broken ones; the test in repository_test.go runs it
// on this repository. Imports are read with go/parser from every file, with any build tags, so a rule holds on all
// systems and not only on the one that runs the test.
//
// Measure counts what makes a tree easy to live in: sizes, old words, mechanisms that exist more than once. A ratchet
// in figures_test.go holds the counts: they may only fall.
package archtest
