import type { Catalog, Route } from '../catalog/catalog.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { CLIENT } from './client.ts'
import type { Facts } from './document.ts'
import { exampleAnswer } from './example.ts'
import { exampleUrl } from './example-url.ts'
import { priceOf } from './listing.ts'
import { parameterRow } from './manual-parameter.ts'
import type { TemplateContext } from './text.ts'
import { charging, freshness, isUpfront, sentence, spellDuration, useWhen } from './wording.ts'

/** All there is to say of one route, and of the sample that shows it. */
export function manualRoute(
  catalog: Catalog,
  facts: Facts,
  route: Route,
  preview: Route | undefined,
): TemplateContext {
  const { operation } = route
  const url = exampleUrl(facts.baseUrl, route)
  const paid = route.kind === 'paid'
  const example = exampleAnswer(catalog, route)
  return {
    anchor: route.name,
    path: route.path,
    price: priceOf(route) ?? '',
    summary: sentence(route.summary),
    useWhen: operation.useWhen === undefined ? '' : useWhen(operation.useWhen),
    description: operation.description === undefined ? '' : sentence(operation.description),
    unavailable: facts.available(operation) ? '' : 'Not available now: answers 503, which is not charged.',
    parameters: route.parameters.map(parameterRow),
    offerCommand: paid ? `curl -i '${url}'` : '',
    command: paid ? '' : `curl '${url}'`,
    program: paid && facts.protocols.includes('x402') ? `const url = '${url}'\n${CLIENT}` : '',
    previews: preview === undefined ? [] : [manualPreview(facts, route, preview)],
    example: example === undefined ? '' : JSON.stringify(example, undefined, 2),
    freshness: freshness(route),
    limit: `Answers within ${spellDuration(operation.timeout)}.`,
    charging: isUpfront(route) ? charging(route) : '',
    sources: attributions(catalog, route),
    errors: errorsOf(route).map((code) => ({ code, status: String(ERRORS[code].status) })),
  }
}

function manualPreview({ baseUrl }: Facts, route: Route, preview: Route): TemplateContext {
  const own = JSON.stringify(preview.parameters) !== JSON.stringify(route.parameters)
  return {
    anchor: preview.name,
    path: preview.path,
    command: `curl '${exampleUrl(baseUrl, preview)}'`,
    takes: own
      ? preview.parameters.length === 0
        ? 'It takes no parameters.'
        : 'It takes these parameters:'
      : 'It takes the same parameters.',
    parameters: own ? preview.parameters.map(parameterRow) : [],
  }
}

/** Where its data comes from, in the words the sources ask for. */
function attributions({ sources }: Catalog, { operation }: Route): string[] {
  const words = operation.sources.map((name) => sources[name]?.attribution ?? sources[name]?.title ?? name)
  return [...new Set(words.map(sentence))]
}

/** The failures a caller of this route is likeliest to meet. */
function errorsOf({ kind, parameters, operation }: Route): ErrorCode[] {
  return [
    ...(kind === 'paid' ? (['payment_required'] as const) : []),
    ...(parameters.length === 0 ? [] : (['parameters_invalid'] as const)),
    ...(operation.sources.length === 0
      ? []
      : (['source_error', 'source_limited', 'source_timeout'] as const)),
    'handler_timeout',
  ]
}
