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
	var failed *smithy.OperationError
	text := err.Error()
	switch {
	case strings.Contains(text, "no EC2 IMDS role found"): // the last source that the SDK tries
		return "there are none in the environment, the AWS configuration or the instance"
	case errors.As(err, &failed) && failed.Operation() == "AssumeRoleWithWebIdentity":
		return webIdentityProblem(failed)
	case errors.As(err, &failed):
		return awserr.Classify(failed.Operation(), failed).Error()
	}
	for _, prefix := range []string{"failed to refresh cached credentials, ", "failed to retrieve credentials, "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return message.OneLine(text)
}
