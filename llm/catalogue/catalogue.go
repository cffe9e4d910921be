// Package catalogue knows models: how much they read and write, and what they
// cost. Its table is embedded, dated and written by hand; nothing is downloaded.
//
// A model that is not in the table is unknown: its cost is unknown too, never 0.
// Ids are matched whole, with an optional date or "latest" after them, so that a
// newer generation is never priced as an older one. The values were read on the
// providers' own pages; values that those pages do not state are left out. Prices are
// list prices in USD for direct use of the provider; resellers set their own.
//
// A model has one list of prices, that of the table's date. Costs that were recorded
// before a change of prices are not computed again. Models that a provider has retired
// stay in the table, because old tasks name them.
package catalogue

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/money"
)

// Model is one row of the table. A cost that depends on a price that is not known is unknown.
type Model struct {
	IDs       []string `json:"ids"`
	api.Model          // without an ID of its own
}

//go:embed models.json
var data []byte

type table struct {
	Date   string              `json:"date"`
	Clouds map[string][]string `json:"clouds"` // the names of models in clouds, as far as they are known
	Models []Model             `json:"models"`
}

var load = sync.OnceValue(func() table {
	var t table
	if err := json.Unmarshal(data, &t); err != nil {
		panic("catalogue: the embedded table is broken: " + err.Error())
	}
	return t
})

// Date returns the day the table was last changed, YYYY-MM-DD. Records of cost keep it.
func Date() string { return load().Date }

// Offers returns all known models, under the names of all providers that are known to offer them: first those of the
// makers, then those of the clouds.
func Offers() []api.Model {
	var out []api.Model
	add := func(provider, id string, m api.Model) {
		m.Provider, m.ID = provider, id
		out = append(out, m)
	}
	for _, m := range load().Models {
		for _, id := range m.IDs {
			add(m.Provider, id, m.Model)
		}
	}
	for _, cloud := range slices.Sorted(maps.Keys(load().Clouds)) {
		for _, id := range load().Clouds[cloud] {
			m, _ := Find(cloud, id)
			add(cloud, id, m.Model)
		}
	}
	return out
}

// suffix matches what may follow an id: a date in one of the providers' spellings.
var suffix = lazyregexp.New(`^(-latest|-\d{8}|-\d{4}-\d{2}-\d{2})$`)

// bedrockName is a model's name in Amazon Bedrock: in an ARN or not, with a group of regions or not, with a version or
// not.
var bedrockName = lazyregexp.New(`^(?:arn:.*/)?(?:[a-z-]+\.)?anthropic\.(claude-.+?)(?:-v\d+(?::\d+)?(?::\d+k)?)?$`)

// vertexName is a Claude's name in Vertex AI, with a date or not.
var vertexName = lazyregexp.New(`^(claude-.+?)(?:-v\d+)?(?:@(\d{8}|default|latest))?$`)

// Maker returns who made a model that a provider offers, as the name of the maker's own provider, and the maker's
// name for it. Roost uses Bedrock for Anthropic's models only. Models that Azure deploys under a name of the user's
// count as OpenAI's. Other providers are makers themselves.
func Maker(provider, model string) (maker, name string) {
	switch provider {
	case "bedrock":
		if m := bedrockName().FindStringSubmatch(model); m != nil {
			model = m[1]
		}
		return "anthropic", model
	case "vertex":
		m := vertexName().FindStringSubmatch(model)
		switch {
		case m == nil:
			return "google", model
		case len(m[2]) == 8: // a date
			return "anthropic", m[1] + "-" + m[2]
		}
		return "anthropic", m[1]
	case "azure":
		return "openai", model
	}
	return provider, model
}

// Find returns the row of a provider's model. A model that a cloud sells has the row of its maker: the clouds charge
// the makers' list prices, some of them a tenth more if the user chooses the region.
func Find(provider, model string) (Model, bool) {
	provider, model = Maker(provider, model)
	for _, m := range load().Models {
		if m.Provider != provider {
			continue
		}
		for _, id := range m.IDs {
			if rest, ok := strings.CutPrefix(model, id); ok && (rest == "" || suffix().MatchString(rest)) {
				return m, true
			}
		}
	}
	return Model{}, false
}

// prices selects the tier. If OpenAI's table has no price for cache writes, OpenAI charges the price of input for
// them.
func (m Model) prices(u llm.Usage) api.Prices {
	p := m.Prices
	if m.Long != nil && u.Input+u.CacheRead+u.CacheWrite > m.Long.Above {
		p = m.Long.Prices
	}
	if p.CacheWrite == nil && m.Provider == "openai" {
		p.CacheWrite = p.Input
	}
	return p
}

// Cost returns the price of a request in micro-dollars. The sum is exact and rounded once, half up, so that it
// depends on nothing but the counts; Roo's double of the same request is at most half a micro-dollar away. ok is
// false when a needed price is not known, or a count makes no sense.
func (m Model) Cost(u llm.Usage) (microUSD int64, ok bool) {
	p := m.prices(u)
	var sum int64 // micro-dollars times a million
	for _, x := range []struct {
		tokens int64
		price  *money.USD
	}{{u.Input, p.Input}, {u.Output, p.Output}, {u.CacheRead, p.CacheRead}, {u.CacheWrite, p.CacheWrite}} {
		if x.tokens == 0 {
			continue
		}
		// The bound keeps the sum below MaxInt64: 4 * 1e10 * 2e8 < 9.2e18.
		if x.price == nil || x.tokens < 0 || x.tokens > 1e10 || *x.price > 2e8 {
			return 0, false
		}
		sum += x.tokens * int64(*x.price)
	}
	return (sum + 500_000) / 1_000_000, true
}

// Tools returns which of several tools for the same work a model uses better: wants are tools to offer in addition to
// the usual ones, and spares are tools not to offer. Both are empty for most models.
//
// The result depends on the model's family and not on the table: the maker decides with which tools a model is
// trained, and even a model from today belongs to a family. The values are those of Roo Code (`includedTools`,
// `excludedTools`): GPT from 4.1 on was trained with apply_patch, Gemini does better with edit_file, Grok with
// search_replace. It also knows other sellers' ids of the same models ("openai/gpt-5.1").
func Tools(provider, model string) (wants, spares []string) {
	provider, model = Maker(provider, model)
	id := strings.ToLower(model)
	_, name, resold := strings.Cut(id, "/")
	if !resold {
		name = id
	}
	switch {
	case provider == "anthropic", provider == "script":
	case strings.HasPrefix(name, "gpt-4o"), strings.HasPrefix(name, "gpt-4-"), name == "gpt-4",
		strings.HasPrefix(name, "gpt-3"), strings.HasPrefix(name, "gpt-oss"):
	case strings.HasPrefix(name, "gpt-"), strings.HasPrefix(name, "codex-"):
		return []string{"apply_patch"}, []string{"apply_diff", "write_to_file"}
	case strings.HasPrefix(name, "gemini-"):
		return []string{"edit_file"}, []string{"apply_diff", "apply_patch"}
	case strings.HasPrefix(name, "grok-"):
		return []string{"search_replace"}, []string{"apply_diff", "apply_patch"}
	}
	return nil, nil
}
