import type { Catalog } from '../../catalog/catalog.ts'
import { toArgument } from '../../catalog/parameter.ts'
import type { JsonObject } from '../../json.ts'
import { toolPrice, type ListedTool } from '../listing.ts'
import type { TemplateContext } from '../text.ts'
import { CHARGED_FIRST, sentence, spellDuration, useWhen } from '../wording.ts'
import { argumentRow } from './argument.ts'
import type { ListedServer } from './listing.ts'
import { serverPagePath, toolAnchor } from './place.ts'
import { setupsFor } from './setup.ts'

/** All there is to say of one companion server, before it is set as a page or as Markdown. */
export function serverManual(catalog: Catalog, server: ListedServer): TemplateContext {
  const { name, title, description, url, tools } = server
  return {
    title,
    description: description === undefined ? '' : sentence(description),
    url,
    place: serverPagePath(catalog, name) ?? '',
    setups: setupsFor(name, url).map((setup) => ({ ...setup })),
    tools: tools.map(toolManual),
  }
}

const IDENTITY = {
  payer: 'It knows only what belongs to the wallet that pays.',
  signer:
    'It knows only what belongs to the wallet that has signed a sign-in-with-x message, under "sign-in-with-x" in params._meta. Without one the result is an error that says what to sign.',
} as const

function toolManual(listed: ListedTool): TemplateContext {
  const { tool, operation, route, parameters } = listed
  const { summary, useWhen: when, description, settle, price, timeout } = operation
  return {
    anchor: toolAnchor(tool.name),
    name: tool.name,
    price: toolPrice(listed) ?? '',
    summary: sentence(summary),
    useWhen: when === undefined ? '' : useWhen(when),
    description: description === undefined ? '' : sentence(description),
    charging:
      price !== undefined && settle === 'upfront' ? sentence(`${CHARGED_FIRST}, before the work`) : '',
    identity: tool.requires === undefined ? '' : IDENTITY[tool.requires],
    parameters: parameters.map(argumentRow),
    call: JSON.stringify(exampleCall(listed), undefined, 2),
    route: route?.path ?? '',
    routeAnchor: route?.name ?? '',
    limit: `Answers within ${spellDuration(timeout)}.`,
  }
}

/** What `callTool` takes: what is required, and what the catalog shows. */
function exampleCall({ tool, parameters }: ListedTool): JsonObject {
  const shown = parameters.flatMap((parameter) => {
    const { name, example } = parameter
    return example === undefined ? [] : [[name, toArgument(parameter, example)] as const]
  })
  return { name: tool.name, arguments: Object.fromEntries(shown) }
}
