{{/* joiner.problem prints a sentence about the first invalid value, or nothing. The rules are in values.rules.json, a JSON schema whose title
explains the additional keywords. The templates check them, because Helm's messages would not suggest the correct name or value. */}}
{{- define "joiner.problem" -}}
{{- $rules := .Files.Get "values.rules.json" | fromJson -}}
{{- include "joiner.check" (dict "value" .Values "rule" $rules "path" "" "rules" $rules) -}}
{{- end -}}

{{/* joiner.check checks "value" against "rule" and prints a sentence about the first problem, or nothing. "path" is the name of the value in
messages. "rules" is the whole schema, with the definitions ("$defs") that "$ref" names. */}}
{{- define "joiner.check" -}}
{{- $rule := .rule -}}
{{- with get $rule "$ref" -}}
{{- $rule = get (get $.rules "$defs") (base .) -}}
{{- end -}}
{{- $args := dict "value" .value "rule" $rule "path" .path "rules" .rules -}}
{{- if not (include "joiner.fits" $args) -}}
{{- include "joiner.unfit" $args -}}
{{- else if kindIs "map" .value -}}
{{- include "joiner.check.map" $args -}}
{{- else if kindIs "slice" .value -}}
{{- include "joiner.check.list" $args -}}
{{- end -}}
{{- end -}}

{{- define "joiner.check.list" -}}
{{- $problem := "" -}}
{{- range $i, $item := .value -}}
{{- if and (not $problem) (hasKey $.rule "items") -}}
{{- $problem = include "joiner.check" (dict "value" $item "rule" $.rule.items "path" (printf "%s[%d]" $.path $i) "rules" $.rules) -}}
{{- end -}}
{{- end -}}
{{- $problem -}}
{{- end -}}

{{- define "joiner.check.map" -}}
{{- $known := .rule.properties | default dict -}}
{{- $others := true -}}
{{- if hasKey .rule "additionalProperties" -}}{{- $others = .rule.additionalProperties -}}{{- end -}}
{{- $problem := "" -}}
{{- range $key := keys .value | sortAlpha -}}
{{- $item := get $.value $key -}}
{{- $path := include "joiner.path" (dict "path" $.path "key" $key) -}}
{{- if not $problem -}}
{{- if hasKey $known $key -}}
{{- $problem = include "joiner.check" (dict "value" $item "rule" (get $known $key) "path" $path "rules" $.rules) -}}
{{- else if kindIs "map" $others -}}
{{- $problem = include "joiner.check" (dict "value" $item "rule" $others "path" $path "rules" $.rules) -}}
{{- else if and (not $others) (not (include "joiner.leftover" (dict "value" $item "path" $path "rules" $.rules))) -}}
{{- $problem = include "joiner.unknown" (dict "value" $item "key" $key "path" $.path "known" $known "rules" $.rules) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key := .rule.required -}}
{{- if and (not $problem) (not (hasKey $.value $key)) -}}
{{- $problem = printf "%s is not set" (include "joiner.path" (dict "path" $.path "key" $key)) -}}
{{- end -}}
{{- end -}}
{{- range $key := .rule.kept -}}
{{- if and (not $problem) (kindIs "invalid" (index $.value $key)) -}}
{{- $problem = printf "%s is null: remove it to get its default" (include "joiner.path" (dict "path" $.path "key" $key)) -}}
{{- end -}}
{{- end -}}
{{- $problem -}}
{{- end -}}

{{/* joiner.path prints the path of "key" below "path": settings.clusterName, serviceAccount.annotations["eks.amazonaws.com/role-arn"]. */}}
{{- define "joiner.path" -}}
{{- if not (regexMatch "^[A-Za-z0-9_-]+$" .key) -}}
{{- printf "%s[%q]" .path .key -}}
{{- else if .path -}}
{{- printf "%s.%s" .path .key -}}
{{- else -}}
{{- .key -}}
{{- end -}}
{{- end -}}

{{/* joiner.fits prints "yes" if "value" satisfies "rule". It does not check the items of a list and the entries of a map. Null satisfies every
rule: the value is not set. */}}
{{- define "joiner.fits" -}}
{{- $rule := .rule -}}
{{- $value := .value -}}
{{- $fits := true -}}
{{- if kindIs "invalid" $value -}}
{{- else if hasKey $rule "oneOf" -}}
{{- $fits = false -}}
{{- range $option := $rule.oneOf -}}
{{- with get $option "$ref" -}}{{- $option = get (get $.rules "$defs") (base .) -}}{{- end -}}
{{- if include "joiner.fits" (dict "value" $value "rule" $option "rules" $.rules) -}}{{- $fits = true -}}{{- end -}}
{{- end -}}
{{- else -}}
{{- $kind := include "joiner.kind" $value -}}
{{- $kinds := list -}}
{{- if hasKey $rule "type" -}}{{- $kinds = kindIs "slice" $rule.type | ternary $rule.type (list $rule.type) -}}{{- end -}}
{{- if and $kinds (not (has $kind $kinds)) (not (and (eq $kind "integer") (has "number" $kinds))) -}}
{{- $fits = false -}}
{{- else if and (hasKey $rule "enum") (not (has $value $rule.enum)) -}}
{{- $fits = false -}}
{{- else if eq $kind "string" -}}
{{- $fits = and (or (not (hasKey $rule "pattern")) (regexMatch ($rule.pattern | default "") $value)) (or (not (get $rule "encoded")) (include "joiner.encoded" (dict "value" $value "start" $rule.encoded))) -}}
{{- else if or (eq $kind "integer") (eq $kind "number") -}}
{{- $fits = eq (include "joiner.bounded" (dict "value" $value "rule" $rule) | float64) (float64 $value) -}}
{{- if and (hasKey $rule "exclusiveMaximum") (ge (float64 $value) (float64 $rule.exclusiveMaximum)) -}}{{- $fits = false -}}{{- end -}}
{{- if and (hasKey $rule "exclusiveMinimum") (le (float64 $value) (float64 $rule.exclusiveMinimum)) -}}{{- $fits = false -}}{{- end -}}
{{- else if and (eq $kind "object") (hasKey $rule "maxProperties") -}}
{{- $fits = le (len $value) (int $rule.maxProperties) -}}
{{- end -}}
{{- end -}}
{{- if $fits -}}yes{{- end -}}
{{- end -}}

{{/* joiner.encoded prints "yes" if "value" is empty, or base64 of a text that begins with "start". */}}
{{- define "joiner.encoded" -}}
{{- if or (not .value) (hasPrefix .start (b64dec .value)) -}}yes{{- end -}}
{{- end -}}

{{/* joiner.kind prints the JSON schema type of a value. A number is a float64 in a values file, and an int64 in --set. */}}
{{- define "joiner.kind" -}}
{{- if kindIs "map" . -}}object
{{- else if kindIs "slice" . -}}array
{{- else if kindIs "string" . -}}string
{{- else if kindIs "bool" . -}}boolean
{{- else if kindIs "float64" . -}}{{- if eq . (floor .) -}}integer{{- else -}}number{{- end -}}
{{- else if kindIs "invalid" . -}}null
{{- else -}}integer
{{- end -}}
{{- end -}}

{{/* joiner.bounded prints the number nearest to "value" that is within the minimum and maximum of "rule". */}}
{{- define "joiner.bounded" -}}
{{- $n := float64 .value -}}
{{- if hasKey .rule "minimum" -}}{{- $n = maxf $n .rule.minimum -}}{{- end -}}
{{- if hasKey .rule "maximum" -}}{{- $n = minf $n .rule.maximum -}}{{- end -}}
{{- include "joiner.plain" $n -}}
{{- end -}}

{{/* joiner.plain prints a value. A number has no exponent: 111122223333, not 1.11122223333e+11. */}}
{{- define "joiner.plain" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}{{- printf "%.0f" . -}}{{- else -}}{{- . -}}{{- end -}}
{{- end -}}
