package api

import "github.com/joiner-sh/joiner/internal/emulator/world/failure"

// Denial returns the service's error for a call that IAM denies. what is the message.
func Denial(c *Call, what string) error {
	switch c.Service {
	case "ec2":
		return Forbidden("UnauthorizedOperation", "You are not authorized to perform this operation. "+what)
	case "ssm", "pricing":
		return &failure.Error{Code: "AccessDeniedException", Message: what}
	case "eks", ShiftService:
		return Forbidden("AccessDeniedException", what)
	}
	return Forbidden("AccessDenied", what)
}

// Forbidden returns an error with status 403.
func Forbidden(code, message string) error {
	return &failure.Error{Code: code, Message: message, Status: 403}
}
