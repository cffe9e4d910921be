package app

import (
	"strconv"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/money"
)

// Cents returns an amount for people, "-" when it is not known.
func Cents(usd *money.USD) string { return amount(usd, "-") }

// Dollars returns a cost for people, in words when it is not known.
func Dollars(cost *money.USD) string { return amount(cost, "unknown") }

// Dollars returns a cost for people; with -v it has all of its digits.
func (a *App) Dollars(cost *money.USD) string {
	if cost == nil || !a.Flags.Verbose {
		return Dollars(cost)
	}
	return "$" + display.Thousands(cost.String())
}

// amount returns an amount to the cent.
func amount(usd *money.USD, unknown string) string {
	switch {
	case usd == nil:
		return unknown
	case *usd > 0 && usd.Cents() == 0:
		return "<$0.01"
	}
	return "$" + display.Thousands(usd.Cents().String())
}

// Count returns a number with its thousands apart.
func Count(n int64) string { return display.Thousands(strconv.FormatInt(n, 10)) }
