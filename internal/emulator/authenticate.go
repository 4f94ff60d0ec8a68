package emulator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// How far the time of a signature may be from ours: 5 minutes by
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html, and 15 of EC2 by
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html. A presigned
// call of STS is good for 15 minutes, too, whatever its X-Amz-Expires says: that is how
// the tokens of EKS live so long though they ask for 60 seconds.
const (
	validity     = 5 * time.Minute
	longValidity = 15 * time.Minute
)

// clusterHeader is the header by which a token of EKS names its cluster.
const clusterHeader = "X-K8s-Aws-Id"

// authenticate returns the caller of a request. A key that the world issued must have signed the request. Any other key is the
// administrator of its account, unless the server is strict, the request has a session token (only the world opens sessions),
// or the request is presigned (such a request proves an identity).
func (s *Server) authenticate(w *world.World, now time.Time, r *http.Request, c *api.Call) (identity.Identity, error) {
	sig, err := readSignature(r)
	if errors.Is(err, errUnsigned) {
		return identity.Identity{}, api.Forbidden("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	if err != nil {
		return identity.Identity{}, &failure.Error{Code: "IncompleteSignature", Message: err.Error()}
	}
	session, known := w.SessionByKey(sig.accessKey)
	if !known && (s.Strict || sig.presigned || sig.token != "") {
		return identity.Identity{}, invalidToken(c.Service)
	}
	if !known && s.Assume != "" {
		account := accountOf(sig.accessKey)
		return identity.Identity{
			Account: account,
			Role:    s.Assume,
			ARN:     "arn:" + site.Partition(c.RegionID) + ":sts::" + account + ":assumed-role/" + s.Assume + "/unknown",
		}, nil
	}
	if !known {
		return identity.Root(accountOf(sig.accessKey), c.RegionID), nil
	}
	if session.Token != sig.token || !w.IsValid(session) {
		return identity.Identity{}, invalidToken(c.Service)
	}
	if err := verify(now, session, sig, r, c); err != nil {
		return identity.Identity{}, err
	}
	return session.Identity, nil
}

// verify refuses a request that the session did not sign, or not now.
func verify(now time.Time, session identity.Session, sig signature, r *http.Request, c *api.Call) error {
	if !session.Expires.IsZero() && !now.Before(session.Expires) {
		return expired(c)
	}
	if err := checkTime(now, sig, c); err != nil {
		return err
	}
	if r.Header.Get(clusterHeader) != "" && !slices.Contains(sig.headers, strings.ToLower(clusterHeader)) {
		return api.Forbidden("SignatureDoesNotMatch", "The header "+strings.ToLower(clusterHeader)+" is not signed.")
	}
	if !slices.Contains(sig.headers, "host") || !sig.matches(session.SecretKey, r, c.Body) {
		return api.Forbidden("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

// checkTime refuses a signature that is too old or from the future.
func checkTime(now time.Time, sig signature, c *api.Call) error {
	most := validity
	if c.Service == "ec2" || sig.presigned {
		most = longValidity
	}
	var says string
	switch {
	case now.After(sig.at.Add(most)):
		says = fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - %d min.)",
			sig.at.Format(amzTime), now.Add(-most).Format(amzTime), now.Format(amzTime), int(most.Minutes()))
	case sig.at.After(now.Add(most)):
		says = fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + %d min.)",
			sig.at.Format(amzTime), now.Add(most).Format(amzTime), now.Format(amzTime), int(most.Minutes()))
	default:
		return nil
	}
	switch c.Protocol {
	case api.EC2Query:
		return requestExpired()
	case api.AWSQuery:
		return api.Forbidden("SignatureDoesNotMatch", says)
	case api.AWSJSON10, api.AWSJSON11, api.RESTJSON:
	}
	return &failure.Error{Code: "InvalidSignatureException", Message: says}
}

// expired refuses the keys of a session that has ended, in the words of the service.
func expired(c *api.Call) error {
	const says = "The security token included in the request is expired"
	switch c.Service {
	case "ec2":
		return requestExpired()
	case "ssm", "eks", "pricing", api.ShiftService:
		return &failure.Error{Code: "ExpiredTokenException", Message: says}
	}
	return api.Forbidden("ExpiredToken", says)
}

// requestExpired is what EC2 answers both to keys that have ended and to a signature of another time.
func requestExpired() error {
	return &failure.Error{Code: "RequestExpired", Message: "Request has expired."}
}

// accountOf returns the account that an unknown access key stands for.
func accountOf(accessKey string) string {
	if len(accessKey) == 12 && strings.Trim(accessKey, "0123456789") == "" {
		return accessKey
	}
	return DefaultAccount
}

// invalidToken refuses a key, in the words of the service.
func invalidToken(service string) error {
	switch service {
	case "ec2":
		return &failure.Error{Code: "AuthFailure", Message: "AWS was not able to validate the provided access credentials", Status: 401}
	case "ssm", "eks", "pricing", api.ShiftService:
		return &failure.Error{Code: "UnrecognizedClientException", Message: "The security token included in the request is invalid."}
	}
	return api.Forbidden("InvalidClientTokenId", "The security token included in the request is invalid.")
}

// denied refuses what IAM does not allow, in the words of the service.
func denied(c *api.Call) error {
	return api.Denial(c, "User: "+c.Caller.ARN+" is not authorized to perform: "+c.Name()+
		" on resource: * because no identity-based policy allows the "+c.Name()+" action")
}
