// Module pagetest drives the web page in a browser. It is a module of its own so that none of its dependencies become
// Roost's.
module github.com/roost-dev/roost/tools/pagetest

go 1.26.8

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
