package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// FileCalls counts the arrows between the files of a package: file A calls functions or methods of file B. The files
// are in the order with the fewest arrows backwards, from a later file to an earlier one.
type FileCalls struct {
	Package   string
	Arrows    int
	Backwards []string // each as "later.go calls earlier.go"
}

// listed is what go list prints of a package.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// CallsBetweenFiles counts the arrows of the packages that patterns name, in the module of a folder. It compiles what
// the packages import, and leaves out those with one file.
func CallsBetweenFiles(dir string, patterns ...string) (out []FileCalls, err error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly"}, patterns...)...)
	list.Dir, list.Stderr = dir, os.Stderr
	text, err := list.StdoutPipe()
	if err == nil {
		err = list.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	exports := map[string]string{}
	var packages []listed
	for lines := json.NewDecoder(text); ; {
		var p listed
		if err := lines.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list the packages: %w", errors.Join(err, list.Wait()))
		}
		if exports[p.ImportPath] = p.Export; !p.DepOnly && len(p.GoFiles) > 1 {
			packages = append(packages, p)
		}
	}
	if err := list.Wait(); err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	for _, p := range packages {
		calls, err := callsOf(p, exports)
		if err != nil {
			return nil, fmt.Errorf("read the calls of %s: %w", p.ImportPath, err)
		}
		out = append(out, calls)
	}
	return out, nil
}

// callsOf counts the arrows of one package.
func callsOf(p listed, exports map[string]string) (FileCalls, error) {
	set := token.NewFileSet()
	var files []*ast.File
	number := map[string]int{}
	for i, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return FileCalls{}, err
		}
		files, number[path] = append(files, f), i
	}
	uses := map[*ast.Ident]types.Object{}
	conf := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	pkg, err := conf.Check(p.ImportPath, set, files, &types.Info{Uses: uses})
	if err != nil {
		return FileCalls{}, err
	}
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
	out := FileCalls{Package: p.ImportPath}
	order := orderOf(calls)
	for i, later := range order {
		for k, earlier := range order {
			if !calls[later][earlier] {
				continue
			}
			if out.Arrows++; k < i {
				out.Backwards = append(out.Backwards, p.GoFiles[later]+" calls "+p.GoFiles[earlier])
			}
		}
	}
	slices.Sort(out.Backwards)
	return out, nil
}

// ofInterface reports whether a method is declared in an interface: a call of it reaches no certain file.
func ofInterface(fn *types.Func) bool {
	receiver := fn.Signature().Recv()
	return receiver != nil && types.IsInterface(receiver.Type())
}

// orderOf is an order of files with few arrows backwards. It starts from random orders and moves one file at a time
// for as long as that helps: to find the best order for certain takes too long for twenty files.
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

// placeFor is where one file of an order makes the fewest arrows backwards.
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

// Module is the folder of the module that holds the current folder.
func Module() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
