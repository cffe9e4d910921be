// Command page makes the files of the web page that have another source. It bundles the modules in web/live into the scripts
// that the server sends: web/static/live.js for the page, web/static/worker.js for the one event stream of a browser, and
// web/static/sw.js for when the server is not there. It compiles the templates in web and view/markup to Go. All of them are
// committed, so that neither building nor running Roost needs this program. It needs no node, and no network once its
// modules are there.
//
//	go run -C tools/page . -icons   draw the icons that a device shows for the installed page, from the shapes of roost.svg
//	go run -C tools/page .          write the scripts and the code of the templates
//	go run -C tools/page . -check   compare them with what their sources give; exit code 1 when they differ
//
// All that it bundles is in web/live: an import of anything else is refused.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// scriptBytes bounds a script, before compression: the first page has at most 100 KB compressed, with all that it needs.
const scriptBytes = 96 << 10

// banner tells a reader of a script where its source is.
const banner = "// Made by tools/page from web/live. Do not edit."

// scripts are the entry modules and what becomes of each.
var scripts = []struct {
	module string
	file   string
	format api.Format
}{
	{"live.js", "live.js", api.FormatESModule},
	{"worker.js", "worker.js", api.FormatIIFE}, // not every browser runs a module as a shared worker
	{"sw.js", "sw.js", api.FormatIIFE},
}

func main() {
	check := flag.Bool("check", false, "compare the committed files with what their sources give, and write nothing")
	icons := flag.Bool("icons", false, "draw the icons, and write nothing else")
	root := flag.String("root", "../..", "the checkout")
	flag.Parse()
	do := func() error { return run(*root, *check) }
	if *icons {
		do = func() error { return drawIcons(filepath.Join(*root, "web", "static")) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	made, err := templates(root)
	if err != nil {
		return err
	}
	for _, s := range scripts {
		script, err := bundle(root, s.module, s.format)
		if err != nil {
			return err
		}
		if len(script) > scriptBytes {
			return fmt.Errorf("web/static/%s would have %d bytes; at most %d are allowed", s.file, len(script), scriptBytes)
		}
		made["web/static/"+s.file] = script
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		file := filepath.Join(root, filepath.FromSlash(name))
		if !check {
			if err := os.WriteFile(file, made[name], 0o644); err != nil { //nolint:gosec // a file of the checkout, for all to read
				return fmt.Errorf("write %s: %w", name, err)
			}
			fmt.Printf("%s: %d bytes\n", name, len(made[name]))
			continue
		}
		committed, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the committed %s: %w", name, err)
		}
		if !bytes.Equal(committed, made[name]) {
			return fmt.Errorf("%s is not what its source gives: run go run -C tools/page . and commit the file", name)
		}
		fmt.Printf("%s: %d bytes, as its source gives it\n", name, len(made[name]))
	}
	return nil
}

// bundle makes one script of a module and what it imports.
func bundle(root, module string, format api.Format) ([]byte, error) {
	dir := filepath.Join(root, "web", "live")
	result := api.Build(api.BuildOptions{
		AbsWorkingDir:     dir,
		EntryPoints:       []string{module},
		Bundle:            true,
		Format:            format,
		Target:            api.ES2022,
		Platform:          api.PlatformBrowser,
		Charset:           api.CharsetUTF8,
		MinifySyntax:      true,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		Banner:            map[string]string{"js": banner},
		Plugins:           []api.Plugin{ownModulesOnly(dir)},
		LogLevel:          api.LogLevelSilent,
	})
	var problems []error
	for _, m := range append(result.Errors, result.Warnings...) { // a warning names a mistake, too
		where := module
		if l := m.Location; l != nil {
			where = fmt.Sprintf("%s:%d:%d", l.File, l.Line, l.Column)
		}
		problems = append(problems, fmt.Errorf("bundle web/live/%s: %s", where, m.Text))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return result.OutputFiles[0].Contents, nil
}

// ownModulesOnly refuses an import of what is not in the folder of the modules.
func ownModulesOnly(dir string) api.Plugin {
	return api.Plugin{Name: "own modules", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `.`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			if a.Kind == api.ResolveEntryPoint {
				return api.OnResolveResult{Path: filepath.Join(dir, a.Path)}, nil
			}
			if !strings.HasPrefix(a.Path, "./") || strings.Contains(a.Path, "..") {
				return api.OnResolveResult{}, fmt.Errorf("%q is not a module of web/live", a.Path)
			}
			return api.OnResolveResult{Path: filepath.Join(dir, a.Path)}, nil
		})
	}}
}
