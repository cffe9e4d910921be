package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/cloud"
	"github.com/roost-dev/roost/llm/wire"
)

// The clouds take credentials that their own programs keep: variables of the environment and files below the home
// folder. They are read when a run needs them, and never written. What decides where credentials go (address, region,
// project) is taken from the user's settings and environment alone; a task keeps only an address that its user named.

// cloudSettings are the settings of clouds and the variables that hold them; the first one that is set counts.
var cloudSettings = map[string][]string{
	"bedrock.region":    {"AWS_REGION", "AWS_DEFAULT_REGION"},
	"bedrock.profile":   {"AWS_PROFILE"},
	"vertex.project":    {"GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"},
	"vertex.location":   {"GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"},
	"azure.api_version": {"OPENAI_API_VERSION"},
}

// CloudVariable returns the variable that overrides a setting of a cloud, such as bedrock.region.
func CloudVariable(setting string) string { return cloudSettings[setting][0] }

// secretVariables hold credentials of clouds in addition to KeyVariables.
var secretVariables = []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}

// Login is where the credentials of a cloud come from.
type Login struct {
	Origin string // a variable, or a file
	Ends   string // the last characters of an access key's id, which is no secret
}

// CloudLogin finds the credentials of a cloud that come from its own programs; the zero Login when there are none.
// The error gives the reason why existing credentials cannot be used.
func (c Config) CloudLogin(provider string) (Login, error) {
	switch provider {
	case cloud.Bedrock:
		keys, at, err := c.awsKeys()
		return Login{Origin: at, Ends: keys.AccessKeyID[max(0, len(keys.AccessKeyID)-4):]}, err
	case cloud.Vertex:
		_, at, err := c.googleFile()
		return Login{Origin: at}, err
	}
	return Login{}, nil
}

// cloudEntry opens a provider of a cloud.
type cloudEntry func(c Config, o wire.Options) (p llm.Provider, secrets []string, err error)

func openBedrock(c Config, o wire.Options) (llm.Provider, []string, error) {
	b := cloud.BedrockOptions{Options: o, Region: c.Clouds["bedrock.region"]}
	var secrets []string
	if o.APIKey == "" {
		keys, at, err := c.awsKeys()
		switch {
		case err != nil:
			return nil, nil, &Error{"ask bedrock", err.Error(), c.exportAWS()}
		case at == "":
			return nil, nil, &Error{"ask bedrock", "there are no credentials of AWS",
				"roost auth set bedrock  # a Bedrock API key; or aws configure; or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"}
		}
		secrets = []string{keys.SecretAccessKey, keys.SessionToken}
		b.Credentials = func() (cloud.AWSCredentials, error) {
			keys, _, err := c.awsKeys()
			return keys, err
		}
	}
	b.Region = cmp.Or(b.Region, c.awsValues()["region"])
	p, err := cloud.NewBedrock(b)
	if err != nil {
		return nil, nil, &Error{"ask bedrock", err.Error(), "roost config set providers.bedrock.region us-east-1  # or set AWS_REGION"}
	}
	return p, secrets, nil
}

func openVertex(c Config, o wire.Options) (llm.Provider, []string, error) {
	v := cloud.VertexOptions{Options: o, Project: c.Clouds["vertex.project"], Location: c.Clouds["vertex.location"]}
	if v.Credentials.Token = o.APIKey; o.APIKey == "" {
		file, at, err := c.googleFile()
		switch {
		case err != nil:
			return nil, nil, &Error{"ask vertex", fmt.Sprintf("the credentials file %s: %v", at, err),
				`roost auth status vertex  # after gcloud auth application-default login, or with ` +
					`GOOGLE_OAUTH_ACCESS_TOKEN="$(gcloud auth print-access-token)"`}
		case at == "":
			return nil, nil, &Error{"ask vertex", "there are no credentials of Google Cloud",
				"roost auth status vertex  # after gcloud auth application-default login, or with " +
					"GOOGLE_APPLICATION_CREDENTIALS naming a service account's file"}
		}
		v.Credentials = file
	}
	v.Project = cmp.Or(v.Project, v.Credentials.ProjectID, v.Credentials.QuotaProject)
	p, err := cloud.NewVertex(v)
	if err != nil {
		what := "project PROJECT"
		if v.Project != "" {
			what = "location global"
		}
		return nil, nil, &Error{"ask vertex", err.Error(), "roost config set providers.vertex." + what}
	}
	return p, []string{v.Credentials.RefreshToken, v.Credentials.ClientSecret}, nil
}

func openAzure(c Config, o wire.Options) (llm.Provider, []string, error) {
	switch {
	case o.APIKey == "":
		return nil, nil, &Error{"ask azure", "there is no key", "roost auth set azure  # or set AZURE_OPENAI_API_KEY"}
	case o.BaseURL == "":
		return nil, nil, &Error{"ask azure", "no address is named",
			"roost config set providers.azure.base_url https://NAME.openai.azure.com  # or set AZURE_OPENAI_ENDPOINT"}
	}
	p, err := cloud.NewAzure(cloud.AzureOptions{Options: o, APIVersion: c.Clouds["azure.api_version"]})
	return p, nil, err
}

// awsProfile returns the name of the AWS profile whose keys are used.
func (c Config) awsProfile() string { return cmp.Or(c.Clouds["bedrock.profile"], "default") }

// awsFiles returns the credentials file and the settings file of AWS's programs.
func (c Config) awsFiles() (credentials, config string) {
	in := func(variable, name string) string {
		return cmp.Or(c.getenv(variable), filepath.Join(c.userHome(), ".aws", name))
	}
	return in("AWS_SHARED_CREDENTIALS_FILE", "credentials"), in("AWS_CONFIG_FILE", "config")
}

// awsKeys finds the keys that sign requests: those of the environment, else those of the profile. origin is "" when
// there are none.
func (c Config) awsKeys() (keys cloud.AWSCredentials, origin string, err error) {
	keys = cloud.AWSCredentials{
		AccessKeyID: c.getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: c.getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: c.getenv("AWS_SESSION_TOKEN"),
	}
	if keys.AccessKeyID != "" && keys.SecretAccessKey != "" {
		return keys, "AWS_ACCESS_KEY_ID", nil
	}
	credentials, config := c.awsFiles()
	profile := c.awsProfile()
	for _, path := range []string{credentials, config} {
		values, err := readINI(path, awsSections(path == config, profile)...)
		if err != nil {
			return cloud.AWSCredentials{}, "", err
		}
		keys = cloud.AWSCredentials{
			AccessKeyID: values["aws_access_key_id"], SecretAccessKey: values["aws_secret_access_key"],
			SessionToken: values["aws_session_token"],
		}
		if keys.AccessKeyID != "" && keys.SecretAccessKey != "" {
			return keys, "the profile " + profile + " in " + path, nil
		}
	}
	for _, way := range []string{"sso_session", "sso_start_url", "credential_process", "role_arn", "login_session"} {
		if c.awsValues()[way] != "" {
			return cloud.AWSCredentials{}, "", fmt.Errorf("the AWS profile %s gets its keys by %s, which Roost does not read",
				profile, way)
		}
	}
	if c.Clouds["bedrock.profile"] != "" {
		return cloud.AWSCredentials{}, "", fmt.Errorf("the AWS profile %s has no keys in %s or %s", profile, credentials, config)
	}
	return cloud.AWSCredentials{}, "", nil
}

// exportAWS returns the command to run after another one has put keys that Roost does not read itself into the
// environment.
func (c Config) exportAWS() string {
	return `roost auth status bedrock  # after eval "$(aws configure export-credentials --profile ` + c.awsProfile() +
		` --format env)"`
}

// awsValues returns what AWS's settings file has for the profile.
func (c Config) awsValues() map[string]string {
	_, config := c.awsFiles()
	values, _ := readINI(config, awsSections(true, c.awsProfile())...) // awsKeys reports what cannot be read
	return values
}

// awsSections returns the names of a profile's section: in the settings file every name but "default" has a prefix.
func awsSections(settings bool, profile string) []string {
	if settings && profile != "default" {
		return []string{"profile " + profile}
	}
	return []string{profile, "profile " + profile}
}

// readINI reads the values of a section from a file of AWS's programs; the section may have any of the given names. A
// file that does not exist is empty. It skips indented lines, which belong to the value above them: no value that is
// read here has any.
func readINI(path string, sections ...string) (map[string]string, error) {
	data, err := inputfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out, inside := map[string]string{}, false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.ContainsRune("#; \t", rune(line[0])) {
			continue
		}
		if name, is := strings.CutPrefix(line, "["); is {
			name, _, _ = strings.Cut(name, "]")
			inside = slices.Contains(sections, strings.Join(strings.Fields(name), " "))
			continue
		}
		if key, value, is := strings.Cut(line, "="); is && inside {
			value, _, _ = strings.Cut(value, " #")
			out[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return out, nil
}

// googleFile reads the credentials file of Google's programs: the one that GOOGLE_APPLICATION_CREDENTIALS names, else the
// one that gcloud auth application-default login writes. path is "" when there is none.
func (c Config) googleFile() (file cloud.GoogleCredentials, path string, err error) {
	path = c.getenv("GOOGLE_APPLICATION_CREDENTIALS")
	named := path != ""
	if !named {
		folder := filepath.Join(c.userHome(), ".config", "gcloud")
		if runtime.GOOS == "windows" {
			folder = filepath.Join(c.getenv("APPDATA"), "gcloud")
		}
		path = filepath.Join(cmp.Or(c.getenv("CLOUDSDK_CONFIG"), folder), "application_default_credentials.json")
	}
	data, err := inputfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return file, "", nil
	}
	if err != nil {
		return file, path, err
	}
	file, err = cloud.ReadGoogle(data)
	return file, path, err
}

// userHome returns the user's home folder.
func (c Config) userHome() string {
	if c.Home != "" {
		return c.Home
	}
	home, _ := os.UserHomeDir() // without one there are no files in it
	return cmp.Or(c.getenv("HOME"), home)
}
