package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// In a package of layers, calls between files run down. A package with few arrows may have one that runs back.
func TestCallsBetweenFilesRunDown(t *testing.T) {
	t.Parallel()
	const (
		many      = 10 // arrows from which on a package is held to the share
		most      = 15 // percent that may run backwards
		mostInAll = 15 // percent, of all packages
	)
	all, err := CallsBetweenFiles("../..")
	if err != nil {
		t.Fatal(err)
	}
	arrows, back := 0, 0
	for _, p := range all {
		arrows, back = arrows+p.Arrows, back+len(p.Backwards)
		if p.Arrows >= many && 100*len(p.Backwards) > most*p.Arrows {
			t.Errorf("%s: %d of %d arrows run backwards, want at most %d %%:\n\t%s",
				p.Package, len(p.Backwards), p.Arrows, most, strings.Join(p.Backwards, "\n\t"))
		}
	}
	t.Logf("%d of %d arrows between files run backwards", back, arrows)
	if arrows < 300 || 100*back > mostInAll*arrows {
		t.Errorf("%d of %d arrows between files run backwards, want at most %d %% of hundreds", back, arrows, mostInAll)
	}
}

func TestCallsBetweenFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.test/m\n\ngo 1.24\n",
		"top.go":  "package m\n\nfunc Top() { middle(); low() }\n\ntype asker interface{ ask() }\n",
		"mid.go":  "package m\n\nfunc middle() { low(); var a asker = thing{}; a.ask() }\n",
		"low.go":  "package m\n\nfunc low() { thing{}.ask() }\n\ntype thing struct{}\n",
		"back.go": "package m\n\nfunc (thing) ask() { middle() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := CallsBetweenFiles(dir)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v, want one package", got, err)
	}
	// top calls mid and low, mid calls low, low calls back, back calls mid: one arrow of the circle runs backwards.
	if got[0].Arrows != 5 || len(got[0].Backwards) != 1 {
		t.Errorf("got %+v, want 5 arrows, 1 backwards", got[0])
	}
}

// The search finds the best order of small graphs.
func TestOrderOf(t *testing.T) {
	t.Parallel()
	graph := map[int][]int{0: {1, 2, 5}, 1: {2, 3}, 2: {4}, 3: {2, 0}, 4: {1}, 5: {3, 4}}
	calls := make([][]bool, len(graph))
	for from, list := range graph {
		calls[from] = make([]bool, len(graph))
		for _, to := range list {
			calls[from][to] = true
		}
	}
	least := len(graph) * len(graph)
	permute(slices.Sorted(maps.Keys(graph)), 0, func(order []int) { least = min(least, backwards(order, calls)) })
	if got := backwards(orderOf(calls), calls); got != least {
		t.Errorf("got %d arrows backwards, want %d", got, least)
	}
}

func permute(list []int, from int, visit func([]int)) {
	if from == len(list) {
		visit(list)
	}
	for i := from; i < len(list); i++ {
		list[from], list[i] = list[i], list[from]
		permute(list, from+1, visit)
		list[from], list[i] = list[i], list[from]
	}
}
