package main

import (
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/roost-dev/roost/bench/scale"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// Every cost that the simulation takes is measured.
func TestGroupCosts(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("takes ten seconds, and Linux")
	}
	pgtest.Shared(t) // it skips where there is no PostgreSQL
	defer pgtest.StopShared()
	file := filepath.Join(t.TempDir(), "costs.json")
	rows, err := groupCosts(t.Context(), options{dir: t.TempDir(), quick: true, costs: file})
	if err != nil || len(rows) < 20 {
		t.Fatalf("got %d rows, %v, want a row for each cost", len(rows), err)
	}
	got, err := scale.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(got)
	for i := range v.NumField() {
		if v.Field(i).Float() <= 0 {
			t.Errorf("%s: got %v, want more than nothing", v.Type().Field(i).Name, v.Field(i))
		}
	}
	if got.CommitCold >= got.CommitHot || got.TakeOver < 1e6 || got.TakeLast > 60e6 {
		t.Errorf("got %+v: want less for what is compressed, and a take-over within a minute and after the lease", got)
	}
}
