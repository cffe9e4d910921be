package archtest

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FileCalls counts the arrows between the files of a package: an arrow leads from file A to file B if A calls a
// function or method of B. The files are in the order with the fewest arrows backwards, that is from a later file to
// an earlier one.
type FileCalls struct {
	Package   string // its folder
	Arrows    int
	Backwards []string // each as "later.go calls earlier.go"
}

// CallsBetweenFiles counts the arrows of the packages below a folder, by folder. It leaves out packages with one
// file, tests, other modules, and files for other systems.
//
// It reads each package alone, without the types of its imports. So it misses the call of a method when only an
// imported function shows the type of the value. Rejected: the compiler's export data, for which all packages must be
// compiled; that took minutes on a fresh machine.
func CallsBetweenFiles(root string) (out []FileCalls, err error) {
	err = filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name := entry.Name()
		if dir != root && (name[0] == '.' || name == "testdata" || hasModule(os.DirFS(dir), ".")) {
			return fs.SkipDir
		}
		files, err := goFiles(dir)
		if err != nil || len(files) < 2 {
			return err
		}
		calls, err := callsOf(dir, files)
		out = append(out, calls)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the calls between files: %w", err)
	}
	return out, nil
}

// goFiles returns the files of a package for this system, without tests.
func goFiles(dir string) (names []string, err error) {
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range all {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		ours, err := build.Default.MatchFile(dir, name)
		if err != nil {
			return nil, err
		}
		if ours {
			names = append(names, name)
		}
	}
	return names, err
}

// unknown is an importer that returns empty packages.
type unknown struct{}

func (unknown) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// callsOf counts the arrows of one package.
func callsOf(dir string, names []string) (FileCalls, error) {
	set := token.NewFileSet()
	var files []*ast.File
	number := map[string]int{}
	for i, name := range names {
		path := filepath.Join(dir, name)
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return FileCalls{}, err
		}
		files, number[path] = append(files, f), i
	}
	uses := map[*ast.Ident]types.Object{}
	conf := types.Config{Importer: unknown{}, Error: func(error) {}}                 // much is not found in empty packages
	pkg, _ := conf.Check(filepath.ToSlash(dir), set, files, &types.Info{Uses: uses}) // the same errors again
	calls := make([][]bool, len(files))
	for i := range calls {
		calls[i] = make([]bool, len(files))
	}
	for name, object := range uses {
		fn, ok := object.(*types.Func)
		if !ok || fn.Pkg() != pkg || ofInterface(fn) {
			continue
		}
		from, to := number[set.Position(name.Pos()).Filename], number[set.Position(fn.Pos()).Filename]
		calls[from][to] = calls[from][to] || from != to
	}
	out := FileCalls{Package: filepath.ToSlash(dir)}
	order := orderOf(calls)
	for i, later := range order {
		for k, earlier := range order {
			if !calls[later][earlier] {
				continue
			}
			if out.Arrows++; k < i {
				out.Backwards = append(out.Backwards, names[later]+" calls "+names[earlier])
			}
		}
	}
	slices.Sort(out.Backwards)
	return out, nil
}

// ofInterface reports whether a method is declared in an interface: then it is not known which file a call reaches.
func ofInterface(fn *types.Func) bool {
	receiver := fn.Signature().Recv()
	return receiver != nil && types.IsInterface(receiver.Type())
}

// orderOf returns an order of files with few arrows backwards. It starts from random orders and moves one file at a
// time for as long as that helps: finding the best order takes too long for twenty files.
func orderOf(calls [][]bool) (best []int) {
	const starts = 100
	random := rand.New(rand.NewPCG(1, 2))
	fewest := len(calls) * len(calls)
	for range starts {
		order := random.Perm(len(calls))
		for moved := true; moved; {
			moved = false
			for from := range order {
				if to := placeFor(order, from, calls); to != from {
					file := order[from]
					order = slices.Insert(slices.Delete(order, from, from+1), to, file)
					moved = true
				}
			}
		}
		if n := backwards(order, calls); n < fewest {
			best, fewest = order, n
		}
	}
	return best
}

// placeFor returns the place where one file of an order makes the fewest arrows backwards.
func placeFor(order []int, from int, calls [][]bool) (to int) {
	one := func(set bool) int { return map[bool]int{true: 1}[set] }
	file := order[from]
	to = from
	for most, gain, i := 0, 0, from-1; i >= 0; i-- {
		if gain += one(calls[file][order[i]]) - one(calls[order[i]][file]); gain > most {
			most, to = gain, i
		}
	}
	if to != from {
		return to
	}
	for most, gain, i := 0, 0, from+1; i < len(order); i++ {
		if gain += one(calls[order[i]][file]) - one(calls[file][order[i]]); gain > most {
			most, to = gain, i
		}
	}
	return to
}

func backwards(order []int, calls [][]bool) (n int) {
	for i, later := range order {
		for _, earlier := range order[:i] {
			if calls[later][earlier] {
				n++
			}
		}
	}
	return n
}
