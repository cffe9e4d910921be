package cloud

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm"
)

// What a person can do, by the words and names that the clouds use.
func TestAdvice(t *testing.T) {
	v := VertexOptions{Project: "mine"}
	bedrock := func(exception, message string) string {
		return bedrockAdvice("eu-west-1", exception, &llm.Error{Kind: bedrockKind(exception, message), Message: message})
	}
	for _, c := range []struct{ got, want string }{
		{bedrock("expiredtoken", ""), "log in to AWS again"},
		{bedrock("", "The security token included in the request is expired"), "log in to AWS again"},
		{bedrock("unrecognizedclient", ""), "AWS does not know that access key"},
		{bedrock("", "The security token included in the request is invalid."), "AWS does not know that access key"},
		{bedrock("resourcenotfound", "Model not found."), "a model that eu-west-1 has"},
		{bedrock("validation", "The provided model identifier is invalid."), "a model that eu-west-1 has"},
		{bedrock("accessdenied", "You don't have access to the model with the specified model ID."), "Bedrock console, for the region eu-west-1"},
		{bedrock("accessdenied", "User: arn:x is not authorized to perform: bedrock:InvokeModelWithResponseStream on resource: y"), "allow the action"},
		{bedrock("accessdenied", "no"), "roost auth status bedrock"},
		{bedrock("validation", "messages: too few"), ""},
		{bedrock("throttling", "Too many requests"), ""},
		{vertexAdvice(v, 403, "Vertex AI API has not been used in project mine before or it is disabled."), "gcloud services enable aiplatform.googleapis.com --project mine"},
		{vertexAdvice(VertexOptions{}, 403, "it is disabled"), "gcloud services enable aiplatform.googleapis.com"},
		{vertexAdvice(v, 401, ""), "gcloud auth application-default login"},
		{vertexAdvice(v, 429, "slow down"), ""},
		{azureAdvice(false, 404, "404", "Resource not found"), "the resource's address alone"},
		{azureAdvice(false, 403, "", "Public access is disabled."), "Cognitive Services OpenAI User"},
		{azureAdvice(true, 400, "", "bad"), ""},
	} {
		if !strings.Contains(c.got, c.want) || (c.got == "") != (c.want == "") || strings.HasSuffix(c.got, "--project ") {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
