// Package contenttest is the behaviour that every content store must show: written contents can be read, contents
// that a name reaches or a running process relies on stay, and a process that is killed anywhere leaves a store that
// others can use. Faults of a store's own medium are tested beside the store.
//
//	func TestSuite(t *testing.T) {
//		contenttest.Run(t, func(t *testing.T) contenttest.Backend { ... })
//	}
package contenttest

import (
	"testing"

	"github.com/roost-dev/roost/content"
)

// Backend is one empty place for one store.
type Backend struct {
	// Open opens the store, each time like another process. The test closes it.
	Open func(t testing.TB) content.Store
	// Start starts a process that has the store open and runs Serve, with a failpoint that is armed in it.
	Start func(t testing.TB, fail string) *Child
	// Damage changes bytes of a stored content without the store's knowledge.
	Damage func(t testing.TB, h content.Hash)
	// Lose removes a stored content without the store's knowledge.
	Lose func(t testing.TB, h content.Hash)

	// Commits are the failpoints of a batch and of a name, Collects those of a collection.
	Commits, Collects []string
}

// bench is one test's backend.
type bench struct {
	*testing.T
	Backend
	fresh func() Backend // another empty place
}

// Run runs the suite. open is called once per test and gives a fresh Backend.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	for _, c := range []struct {
		name string
		test func(*bench)
	}{
		{"AnEmptyStore", testEmpty},
		{"WhatIsWrittenIsRead", testRoundTrip},
		{"ABatchIsWholeOrNothing", testBatch},
		{"AContextEndsTheWork", testContext},
		{"ADamagedContentIsWrittenAgain", testDamaged},
		{"AManifestNeedsItsContents", testManifest},
		{"AFileWithTheBytesOfAManifest", testSameBytes},
		{"WhatNamesReachIsCounted", testReaches},
		{"NamesAreKept", testNames},
		{"WhatAnotherProcessHoldsIsNotCollected", testHeld},
		{"HasHoldsWhenAsked", testHasHolds},
		{"WhatIsHeldStaysWhole", testHeldWhole},
		{"CollectingBesideWriters", testBesideWriters},
		{"ANameThatComesAfterTheMark", testLateName},
		{"KeepAddsToWhatStays", testKeep},
		{"ADryRunReportsWhatWillBe", testDryRun},
		{"NothingIsRemovedWhenSomethingIsMissing", testMissing},
		{"AReaderOutlivesACollection", testReader},
		{"OneStoreOfManyGoroutines", testGoroutines},
		{"AStoreIsAMap", testMap},
		{"Kills", testKills},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(&bench{t, open(t), func() Backend { return open(t) }}) })
	}
}
