package codec

import (
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	// decodePatience is how long what Temporal has handed out, such as a workflow task, waits for a codec that is away.
	decodePatience = 30 * time.Second
	firstPause     = 100 * time.Millisecond
	longestPause   = 2 * time.Second
)

// convert encodes or decodes payloads; it returns as many as it got.
type convert func([]*commonpb.Payload) ([]*commonpb.Payload, error)

// interceptor encodes the payloads of requests and decodes those of responses, all payloads of a message in one call.
func interceptor(c converter.PayloadCodec) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		request, isMessage := req.(proto.Message)
		if !isMessage {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		here := c
		if named, ok := req.(interface{ GetNamespace() string }); ok {
			here = inNamespace(c, named.GetNamespace())
		}
		request = proto.Clone(request) // a retry encodes the original again
		if err := convertMessage(ctx, request, here.Encode); err != nil {
			return codecError("encode", err)
		}
		decode := patient(ctx, here.Decode)
		if strings.Contains(method, "/List") {
			decode = lenient(decode)
		}
		if err := invoker(ctx, method, request, reply, cc, opts...); err != nil {
			return decodeDetails(ctx, err, decode)
		}
		response, isMessage := reply.(proto.Message)
		if !isMessage {
			return nil
		}
		if err := convertMessage(ctx, response, decode); err != nil {
			return codecError("decode", err)
		}
		return nil
	}
}

// codecError has a code that the SDK's retries understand: those of Unavailable may help.
func codecError(verb string, err error) error {
	code := codes.FailedPrecondition
	if passing(err) {
		code = codes.Unavailable
	}
	return status.Errorf(code, "%s payloads: %v", verb, err)
}

// convertMessage replaces all payloads of a message but its search attributes.
func convertMessage(ctx context.Context, message proto.Message, convert convert) error {
	var found []*commonpb.Payload
	err := visit(ctx, message, func(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
		found = append(found, payloads...)
		return payloads, nil
	})
	if err != nil || len(found) == 0 {
		return err
	}
	converted, err := exactly(convert, found)
	if err != nil {
		return err
	}
	by := make(map[*commonpb.Payload]*commonpb.Payload, len(found))
	for i, payload := range found {
		by[payload] = converted[i]
	}
	return visit(ctx, message, func(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
		if _, known := by[payloads[0]]; !known { // of a message in a message, which each visit unmarshals anew
			return exactly(convert, payloads)
		}
		result := make([]*commonpb.Payload, len(payloads))
		for i, payload := range payloads {
			result[i] = by[payload]
		}
		return result, nil
	})
}

func visit(ctx context.Context, message proto.Message, visitor convert) error {
	return proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			if len(payloads) == 0 {
				return payloads, nil
			}
			return visitor(payloads)
		},
		SkipSearchAttributes: true,
	})
}

// exactly converts and checks that there are as many payloads as before.
func exactly(convert convert, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	converted, err := convert(payloads)
	if err == nil && len(converted) != len(payloads) {
		err = fmt.Errorf("the codec made %d payloads of %d", len(converted), len(payloads))
	}
	return converted, err
}

// patient tries again while the codec is away and ctx goes on.
func patient(ctx context.Context, decode convert) convert {
	return func(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
		ctx, cancel := context.WithTimeout(ctx, decodePatience)
		defer cancel()
		for pause := firstPause; ; pause = min(2*pause, longestPause) {
			decoded, err := decode(payloads)
			if err == nil || !passing(err) {
				return decoded, err
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(pause):
			}
		}
	}
}

// lenient leaves what cannot be decoded as it is: in a list, the other entries can still be read.
func lenient(decode convert) convert {
	return func(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
		decoded, err := decode(payloads)
		if err == nil || passing(err) {
			return decoded, err
		}
		result := make([]*commonpb.Payload, len(payloads))
		for i, payload := range payloads {
			result[i] = payload
			if one, err := exactly(decode, []*commonpb.Payload{payload}); err == nil {
				result[i] = one[0]
			}
		}
		return result, nil
	}
}

// decodeDetails decodes the failures that an error of Temporal carries, such as that of a query.
func decodeDetails(ctx context.Context, err error, decode convert) error {
	answer, ok := status.FromError(err)
	if !ok || len(answer.Proto().GetDetails()) == 0 {
		return err
	}
	decoded := answer.Proto() // a copy
	for _, detail := range decoded.GetDetails() {
		if err := decodeDetail(ctx, detail, decode); err != nil {
			return codecError("decode", err)
		}
	}
	return status.ErrorProto(decoded)
}

func decodeDetail(ctx context.Context, detail *anypb.Any, decode convert) error {
	message, err := detail.UnmarshalNew()
	if err != nil {
		return nil // of a type that is unknown here, and so is none with payloads
	}
	if err := convertMessage(ctx, message, decode); err != nil {
		return err
	}
	return detail.MarshalFrom(message)
}
