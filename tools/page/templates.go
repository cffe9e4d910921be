package main

import (
	"bytes"
	"fmt"
	"go/format"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/a-h/templ/generator"
	"github.com/a-h/templ/parser/v2"
)

// templateFolders hold the templates of the page. The Go code of x.templ is x_templ.go.
var templateFolders = []string{"web", "view/markup"}

// templates returns the Go code of every template, by its file's path in the checkout.
func templates(root string) (map[string][]byte, error) {
	made := map[string][]byte{}
	for _, folder := range templateFolders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.templ"))
		if err != nil {
			return nil, fmt.Errorf("find the templates of %s: %w", folder, err)
		}
		for _, file := range files {
			code, err := compile(file)
			if err != nil {
				return nil, fmt.Errorf("compile the template %s: %w", file, err)
			}
			made[folder+"/"+strings.TrimSuffix(filepath.Base(file), ".templ")+"_templ.go"] = code
		}
	}
	return made, nil
}

// devWrite is the beginning of a call that writes a constant text. Where the variable TEMPL_DEV_MODE is set, the call reads
// the text from a file of a templ server instead, and fails without one: that is for programs under development.
var devWrite = regexp.MustCompile(`(\w+_Err) = templruntime\.WriteString\((\w+_Buffer), \d+, `)

// compile returns the Go code of one template.
func compile(file string) ([]byte, error) {
	parsed, err := parser.Parse(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if _, err := generator.Generate(parsed, &out, generator.WithFileName(filepath.Base(file))); err != nil {
		return nil, err
	}
	return format.Source(devWrite.ReplaceAll(out.Bytes(), []byte("_, $1 = $2.WriteString(")))
}
