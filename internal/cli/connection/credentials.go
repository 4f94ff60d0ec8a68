// Package connection explains why no connection to Kubernetes or AWS can be made: kubeconfig, credentials, endpoint,
// web identity.
//
// In: the configuration and the error of a client.
// Out: an error or a hint that names the file, field or variable, and the fix.
// Never: a message with a token, or with a secret of a kubeconfig or an address.
package connection

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/cli/message"
)

// CredentialsProblem returns one line on why the AWS SDK has no credentials. err is the error of the SDK.
func CredentialsProblem(err error) string {
	var call *smithy.OperationError
	text := err.Error()
	switch {
	case strings.Contains(text, "no EC2 IMDS role found"): // the last source that the SDK tries
		return "there are none in the environment, the AWS configuration or the instance"
	case errors.As(err, &call) && call.Operation() == "AssumeRoleWithWebIdentity":
		return webIdentityProblem(call)
	case errors.As(err, &call):
		return awserr.Classify(call.Operation(), call).Error()
	}
	for _, layer := range []string{"failed to refresh cached credentials, ", "failed to retrieve credentials, "} {
		text = strings.TrimPrefix(text, layer)
	}
	return message.OneLine(text)
}
