package api

import "github.com/roost-dev/roost/money"

// Setting is a setting of the user, or one that is not set.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`  // a string, a list of strings, or null; "***" for a secret
	Origin string `json:"origin"` // default, the variable, the flag, or FILE:LINE
}

// UserSetting is a setting with its description.
type UserSetting struct {
	Key    string   `json:"key"`
	Value  []string `json:"value"`  // empty if not set, one element unless the setting is a list; "***" for a secret
	Origin string   `json:"origin"` // as in Setting
	Doc    string   `json:"doc"`
	List   bool     `json:"list"`
	Words  []string `json:"words"` // the allowed values; empty: any well-formed value
	Plain  bool     `json:"plain"` // a request from another machine may set it, too
}

// KeyState is the visible state of a provider's or profile's key.
type KeyState struct {
	Provider string `json:"provider,omitempty"`
	Profile  string `json:"profile,omitempty"`
	Set      bool   `json:"set"`
	Origin   string `json:"origin,omitempty"` // a variable, a file, the keyring, or PATH:LINE of the settings
	Page     string `json:"page,omitempty"`   // where people make keys for the provider
	Ends     string `json:"ends,omitempty"`   // the last four characters of the key, or of the access key's id
	// Problem is why existing credentials of a cloud cannot be used.
	Problem string `json:"problem,omitempty"`
}

// Prices are US dollars for a million tokens; null is unknown, or not sold.
type Prices struct {
	Input      *money.USD `json:"input"`
	Output     *money.USD `json:"output"`
	CacheRead  *money.USD `json:"cache_read"`
	CacheWrite *money.USD `json:"cache_write"`
}

// LongPrices are the prices of requests with more tokens than Above.
type LongPrices struct {
	Above  int64  `json:"above"` // tokens of the whole input
	Prices Prices `json:"prices"`
}

// Model is a model that Roost knows.
type Model struct {
	Provider  string      `json:"provider"`
	ID        string      `json:"id"`
	Context   int         `json:"context"`    // tokens of the window
	MaxOutput int         `json:"max_output"` // tokens of one reply
	Prices    Prices      `json:"prices"`
	Long      *LongPrices `json:"long"`    // higher prices of long requests; null = one price
	Checked   string      `json:"checked"` // the day when the values were checked on the provider's pages, YYYY-MM-DD
}

// Models are the models that Roost knows, and the date of their list.
type Models struct {
	Date  string  `json:"date"`
	Items []Model `json:"items"`
}

// Mode is a mode that tasks may be in.
type Mode struct {
	Slug   string   `json:"slug"`
	Name   string   `json:"name"`
	Tools  []string `json:"tools"`          // its groups of tools
	Source string   `json:"source"`         // built-in, global, project
	Path   string   `json:"path,omitempty"` // of the file that defines it
}

// MCPServer is an MCP server that a settings file defines. It holds no values of variables and headers, and masks what
// looks like a secret in a command line.
type MCPServer struct {
	Name     string   `json:"name"`
	State    string   `json:"state"` // allowed, not_allowed, denied, disabled, invalid
	Problem  string   `json:"problem,omitempty"`
	Scope    string   `json:"scope"` // workspace, own, editor
	File     string   `json:"file"`
	Kind     string   `json:"kind"`
	Line     string   `json:"runs"` // the command line, or the address
	Env      []string `json:"env"`  // names
	Headers  []string `json:"headers"`
	Always   []string `json:"always_allow"`
	Disabled []string `json:"disabled_tools"`
	Timeout  float64  `json:"timeout_seconds"`
	LoggedIn bool     `json:"logged_in"`

	Check *MCPCheck `json:"check,omitempty"`
}

// MCPCheck are the tools and resources that an MCP server offered in a check.
type MCPCheck struct {
	OK        bool          `json:"ok"`
	Error     string        `json:"error,omitempty"`
	Tools     []MCPTool     `json:"tools"`
	Resources []MCPResource `json:"resources"`
	Notes     []string      `json:"notes"`
}

// MCPTool is a tool of an MCP server.
type MCPTool struct {
	Name        string `json:"name"`
	Offered     string `json:"offered_as"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"read_only"`
}

// MCPResource is a resource of an MCP server.
type MCPResource struct {
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Template bool   `json:"template"`
}

// ProviderState is a provider that can answer tasks.
type ProviderState struct {
	Name    string     `json:"name"`
	Key     KeyState   `json:"key"`
	Keyless bool       `json:"keyless"`           // it can answer without a key: a model server of the user's own
	Model   string     `json:"model,omitempty"`   // the model of a task that names none; empty: each task has to name one
	Address string     `json:"address,omitempty"` // its address; empty: the user has to set one
	Test    *money.USD `json:"test_cost"`         // the most that a test request costs; null = the price is not known
}

// UserSettings are what the user has set up.
type UserSettings struct {
	Path     string `json:"path"`               // of the settings file
	Here     bool   `json:"here"`               // whether this request may also write what names programs, addresses, keys
	Provider string `json:"provider,omitempty"` // of new tasks
	Model    string `json:"model,omitempty"`
	Problem  string `json:"problem,omitempty"` // why no model can answer new tasks; empty: one can

	Items     []UserSetting   `json:"items"`
	Providers []ProviderState `json:"providers"`
	Profiles  []KeyState      `json:"profiles"` // with a key of their own
	Sources   []string        `json:"sources"`  // folders that the user added
	Warnings  []string        `json:"warnings"`
}

// SettingsPatch changes settings.
type SettingsPatch struct {
	Set   map[string][]string `json:"set,omitempty"`   // values by setting; a setting that is no list has one value
	Unset []string            `json:"unset,omitempty"` // settings to take out of the file
}

// NewKey is a key to keep.
type NewKey struct {
	Key   string `json:"key"`
	Force bool   `json:"force,omitempty"` // keep it even if it does not look like a key of the provider
}

// NewMCPServer is an MCP server to define, by a command or by an address.
type NewMCPServer struct {
	Name    string            `json:"name"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Dir     string            `json:"cwd,omitempty"` // the folder that the command runs in; empty: the workspace
	URL     string            `json:"url,omitempty"`
	SSE     bool              `json:"sse,omitempty"` // the server at the address speaks the older transport
	Headers map[string]string `json:"headers,omitempty"`
	Replace bool              `json:"replace,omitempty"` // replace a server of this name
}

// NewSource is a folder of another tool to read tasks from.
type NewSource struct {
	Path string `json:"path"` // absolute
}

// AddedSource describes the contents of a folder that was added as a source.
type AddedSource struct {
	Path  string `json:"path"`
	Tool  string `json:"tool"`
	Tasks int    `json:"tasks"`
	Added bool   `json:"added"` // false: it was a source already
}

// NewTest asks a provider for one short reply.
type NewTest struct {
	Model string `json:"model,omitempty"` // empty: the one of new tasks, or the provider's usual one
}

// Tested is a short reply of a provider.
type Tested struct {
	Provider string     `json:"provider"`
	Model    string     `json:"model"`
	Text     string     `json:"text"` // the beginning of the reply
	In       int64      `json:"tokens_in"`
	Out      int64      `json:"tokens_out"`
	Cost     *money.USD `json:"cost"` // null = the price is not known
	Elapsed  int64      `json:"elapsed_ms"`
}
