package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// boms list, for each target, what the program was linked of, as CycloneDX.
func (r *release) boms() ([]file, error) {
	var out []file
	for _, t := range r.Targets {
		info, err := buildinfo.Read(bytes.NewReader(r.Programs[t]))
		if err != nil {
			return nil, fmt.Errorf("read the build information for %s: %w", t, err)
		}
		out = append(out, plain(r.asset(t, ".cdx.json"), bom(r, info, sha256.Sum256(r.Programs[t]))))
	}
	return out, nil
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref  string   `json:"ref"`
	Uses []string `json:"dependsOn,omitempty"`
}

// bom is one document. The number is made of the program's checksum, so that the same program has the same document.
func bom(r *release, info *debug.BuildInfo, sum [32]byte) []byte {
	root := component{
		Type: "application", Name: "roost", Version: r.Version, PURL: purl(module, "v"+r.Version),
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}, Licenses: make([]license, 1),
	}
	root.Licenses[0].License.ID = "Apache-2.0"
	for _, s := range info.Settings {
		root.Properties = append(root.Properties, property{"go:build:" + strings.TrimPrefix(s.Key, "-"), s.Value})
	}
	root.Properties = append(root.Properties, property{"vcs.revision", r.Commit.Hash})
	root.Ref = root.PURL
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{{Type: "library", Name: "std", Version: goVersion, PURL: purl("std", goVersion)}}
	for _, m := range linked(info) {
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version)}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		parts = append(parts, c)
	}
	uses := make([]string, len(parts))
	for i := range parts {
		parts[i].Ref = parts[i].PURL
		uses[i] = parts[i].Ref
	}
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // UUID version 8: a form of our own
	return indented(map[string]any{
		"$schema":   "http://cyclonedx.org/schema/bom-1.6.schema.json",
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"serialNumber": fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]),
		"metadata": map[string]any{
			"timestamp": r.Commit.Time.Format(time.RFC3339), "component": root,
			"tools": map[string]any{"components": []map[string]string{
				{"type": "application", "name": "tools/release", "version": r.Version},
			}},
		},
		"components":   parts,
		"dependencies": []dependency{{Ref: root.Ref, Uses: uses}},
	})
}

// linked are the modules of a program, each as the one that replaces it, sorted.
func linked(info *debug.BuildInfo) []*debug.Module {
	var out []*debug.Module
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
