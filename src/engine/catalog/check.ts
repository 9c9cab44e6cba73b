import { checkAccess } from './access.ts'
import { checkApiKeys } from './api-keys.ts'
import { checkBodies } from './rules/check-body.ts'
import { checkChannels } from './rules/check-channels.ts'
import { checkDiscovery } from './rules/check-discovery.ts'
import { type CheckContext, type CheckInputs, withDefaults } from './check-context.ts'
import { checkHandlers } from './rules/check-handlers.ts'
import { checkParameters } from './rules/check-parameters.ts'
import { checkPaths } from './rules/check-paths.ts'
import { checkPassthrough } from './rules/check-passthrough.ts'
import { checkPayerLimits, checkStreamCredit } from './rules/check-payer-limits.ts'
import { checkPayments } from './rules/check-payments.ts'
import { checkPriceRules } from './price/check-rule.ts'
import { checkPrices } from './price/check-prices.ts'
import { checkProxies } from './rules/check-proxies.ts'
import { checkReferences } from './rules/check-references.ts'
import { checkWebhooks } from './rules/check-webhooks.ts'
import { checkShape } from './check-shape.ts'
import { hasErrors, type Issue } from './issue.ts'
import { parse } from './parse.ts'

export type Checked =
  | { readonly kind: 'sound'; readonly context: CheckContext; readonly issues: readonly Issue[] }
  | { readonly kind: 'unsound'; readonly issues: readonly Issue[] }

const RULES: readonly ((context: CheckContext) => Iterable<Issue>)[] = [
  checkPrices,
  checkPriceRules,
  checkPaths,
  checkParameters,
  checkBodies,
  checkHandlers,
  checkProxies,
  checkPassthrough,
  checkReferences,
  checkPayments,
  checkPayerLimits,
  checkStreamCredit,
  checkChannels,
  checkDiscovery,
  checkApiKeys,
  checkAccess,
  checkWebhooks,
]

/**
 * Finds all errors of a catalog text at once: syntax, then shape, then meaning, in the order of the file. A file
 * that is not valid YAML is checked no further, since its content is uncertain.
 */
export function check(text: string, inputs: CheckInputs): Checked {
  const { document, issues: syntax, readable } = parse(text)
  if (!readable) return { kind: 'unsound', issues: inOrder(syntax) }
  const shape = checkShape(document)
  const found = [...syntax, ...firstOfEachPlace(shape.issues)]
  if (shape.declared === undefined) return { kind: 'unsound', issues: inOrder(found) }
  const context = { ...inputs, declared: shape.declared, document: withDefaults(document) }
  const said = new Set(found.filter(isAboutValue).map(placeOf))
  const sense = RULES.flatMap((rule) => [...rule(context)]).filter((issue) => !said.has(placeOf(issue)))
  const issues = inOrder([...found, ...sense])
  return hasErrors(issues) ? { kind: 'unsound', issues } : { kind: 'sound', context, issues }
}

/** Keeps one issue for a value that breaks its schema in several ways; each missing key is reported at its parent. */
function firstOfEachPlace(issues: readonly Issue[]): Issue[] {
  const seen = new Set<string>()
  return issues.filter(
    (issue) => !isAboutValue(issue) || (!seen.has(placeOf(issue)) && seen.add(placeOf(issue))),
  )
}

function isAboutValue({ code }: Issue): boolean {
  return !code.endsWith('_missing') || code === 'value_missing'
}

function placeOf({ position }: Issue): string {
  return `${position.line}:${position.column}`
}

/** Sorts by position in the file, and keeps one of several equal issues that aliases cause. */
function inOrder(issues: readonly Issue[]): Issue[] {
  const seen = new Map(issues.map((issue) => [`${placeOf(issue)} ${issue.code} ${issue.message}`, issue]))
  return [...seen.values()].sort(
    (a, b) =>
      a.position.line - b.position.line ||
      a.position.column - b.position.column ||
      a.code.localeCompare(b.code),
  )
}
