// Module page makes the scripts and the templates' code of the web page. It is a module of its own so that none of its dependencies become
// Roost's.
module github.com/roost-dev/roost/tools/page

go 1.26.8

require (
	github.com/a-h/templ v0.3.1118
	github.com/evanw/esbuild v0.28.2
)

require (
	github.com/a-h/parse v0.0.42 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
