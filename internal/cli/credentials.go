package cli

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// CredentialsProblem returns a one-line text that says why the AWS SDK has no
// credentials, from the SDK's error.
func CredentialsProblem(err error) string {
	var call *smithy.OperationError
	text := err.Error()
	switch {
	case strings.Contains(text, "no EC2 IMDS role found"): // the last place where the SDK looks
		return "there are none in the environment, the AWS configuration or the instance"
	case errors.As(err, &call) && call.Operation() == "AssumeRoleWithWebIdentity":
		return webIdentityProblem(call)
	case errors.As(err, &call):
		return awserr.Sort(call.Operation(), call).Error()
	}
	for _, layer := range []string{"failed to refresh cached credentials, ", "failed to retrieve credentials, "} {
		text = strings.TrimPrefix(text, layer)
	}
	return oneLine(text)
}
