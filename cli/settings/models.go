package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// pricesItem are US dollars for a million tokens; null is unknown, or not sold.
type pricesItem struct {
	Input      *string `json:"input"`
	Output     *string `json:"output"`
	CacheRead  *string `json:"cache_read"`
	CacheWrite *string `json:"cache_write"`
}

func pricesOf(p catalogue.Prices) pricesItem {
	text := func(micro *int64) *string {
		if micro == nil {
			return nil
		}
		s := money.USD(*micro).String()
		return &s
	}
	return pricesItem{text(p.Input), text(p.Output), text(p.CacheRead), text(p.CacheWrite)}
}

type longItem struct {
	Above  int64      `json:"above"` // tokens of the whole input
	Prices pricesItem `json:"prices"`
}

// modelItem is a model as --json shows it.
type modelItem struct {
	Provider  string     `json:"provider"`
	ID        string     `json:"id"`
	Context   int        `json:"context"`
	MaxOutput int        `json:"max_output"`
	Prices    pricesItem `json:"prices"`
	Long      *longItem  `json:"long"` // dearer for long requests; null = one price
	Checked   string     `json:"checked"`
}

func (a *commands) modelsCommand() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use: "models [--provider NAME]", Short: "List the models that are known, with window and price",
		Long: "List the models that are known: window and longest reply in tokens, prices in US\n" +
			"dollars for a million tokens, and when its provider's pages last showed them. A model\n" +
			"that is not listed works too; what it costs is then unknown.",
		Args: failure.Arguments(0, 0, "roost models --provider anthropic"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return a.models(provider) },
	}
	cmd.Flags().StringVar(&provider, "provider", "", "only those of this provider")
	app.Complete(cmd, "provider", app.Words(knownProviders()...))
	return cmd
}

// knownProviders are those whose models are listed.
func knownProviders() []string {
	var out []string
	for _, m := range catalogue.Models() {
		if !slices.Contains(out, m.Provider) {
			out = append(out, m.Provider)
		}
	}
	return out
}

func (a *commands) models(provider string) error {
	known := knownProviders()
	if provider != "" && !slices.Contains(known, provider) {
		why := "no models of it are known; there are those of " + strings.Join(known, ", ")
		if slices.Contains(app.Providers, provider) {
			why = "its server decides which models it has; for " + strings.Join(known, ", ") + " they are known"
		}
		return failure.Usage("roost models --provider "+provider, why, "roost models --provider "+known[0])
	}
	items := []modelItem{}
	for _, m := range catalogue.Models() {
		if provider != "" && provider != m.Provider {
			continue
		}
		for _, id := range m.IDs {
			item := modelItem{
				Provider: m.Provider, ID: id, Context: m.Context, MaxOutput: m.MaxOutput, Prices: pricesOf(m.Prices), Checked: m.Checked,
			}
			if m.Long != nil {
				item.Long = &longItem{m.Long.Above, pricesOf(m.Long.Prices)}
			}
			items = append(items, item)
		}
	}
	if a.Flags.JSON {
		return app.Encode(a.Out, struct {
			Date  string      `json:"date"`
			Items []modelItem `json:"items"`
		}{catalogue.Date(), items}, false)
	}
	wide := len("model")
	for _, i := range items {
		wide = max(wide, len(i.Provider)+1+len(i.ID))
	}
	line := func(name, window, reply, in, out, read, write, checked string) string {
		return fmt.Sprintf("%-*s  %9s  %7s  %8s  %8s  %8s  %8s  %s", wide, name, window, reply, in, out, read, write, checked)
	}
	head := line("model", "window", "reply", "in", "out", "cached", "caching", "checked")
	if _, err := fmt.Fprintln(a.Out, a.OutStyle().Paint(view.Head, head)); err != nil {
		return fmt.Errorf("print the models: %w", err)
	}
	for _, i := range items {
		rows := []string{line(i.Provider+" "+i.ID, strconv.Itoa(i.Context), strconv.Itoa(i.MaxOutput),
			price(i.Prices.Input, "unknown"), price(i.Prices.Output, "unknown"), price(i.Prices.CacheRead, "unknown"),
			price(i.Prices.CacheWrite, "-"), i.Checked)}
		if l := i.Long; l != nil {
			rows = append(rows, line("", fmt.Sprintf("> %d", l.Above), "", price(l.Prices.Input, "unknown"),
				price(l.Prices.Output, "unknown"),
				price(l.Prices.CacheRead, "unknown"), price(l.Prices.CacheWrite, "-"), ""))
		}
		for _, row := range rows {
			if err := a.Println(strings.TrimRight(row, " ")); err != nil {
				return err
			}
		}
	}
	a.Say("US dollars for a million tokens: written, read from a cache, put into it (- is unknown or not sold). " +
		"Above the tokens after > a request costs more.")
	return nil
}

func price(usd *string, unknown string) string {
	if usd == nil {
		return unknown
	}
	return *usd
}
