package metrics

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Media is the media type of Text.
const Media = "text/plain; version=0.0.4; charset=utf-8"

// Text is a document of metrics.
type Text struct{ strings.Builder }

// Gauge writes a number that goes up and down.
func (b *Text) Gauge(name, help string, value float64) {
	b.samples(name, help, "gauge", map[string]float64{"": value})
}

// Gauges writes such a number for each value of a label.
func (b *Text) Gauges(name, help, label string, values map[string]float64) {
	all := map[string]float64{}
	for value, n := range values {
		all[labelled([]string{label}, []string{value})] = n
	}
	b.samples(name, help, "gauge", all)
}

// Build writes which program runs, and which Go built it.
func (b *Text) Build(version, language string) {
	labels := labelled([]string{"version", "go"}, []string{version, language})
	b.samples("roost_build_info", "What runs here.", "gauge", map[string]float64{labels: 1})
}

// samples writes a metric with its numbers by their labels in text form.
func (b *Text) samples(name, help, kind string, all map[string]float64) {
	b.head(name, help, kind)
	for _, labels := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(name + labels + " " + digits(all[labels]) + "\n")
	}
}

func (b *Text) head(name, help, kind string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var labelQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelled are labels in text form; "" without any.
func labelled(names, values []string) string {
	if len(names) == 0 {
		return ""
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + `="` + labelQuotes.Replace(values[i]) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func digits(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}
