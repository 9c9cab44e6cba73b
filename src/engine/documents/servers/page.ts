import type { Catalog } from '../../catalog/catalog.ts'
import { addressOf } from '../directory.ts'
import type { Facts } from '../document.ts'
import { frame, readPage } from '../page.ts'
import { identifyServer } from './identity.ts'
import type { ListedServer } from './listing.ts'
import { serverManual } from './manual.ts'
import { howToPayTools, payingClients, TOOL_CLIENT } from './payment.ts'

const print = readPage('docs-server.html.hbs')

/** One companion server for people: how to connect, how to pay, and its tools. */
export function renderServerPage(catalog: Catalog, facts: Facts, server: ListedServer): string {
  const { title, description, websiteUrl } = identifyServer(catalog, facts, server.name)
  return print({
    page: frame(catalog, facts, {
      title: `${title} · ${catalog.service.name}`,
      description,
      url: websiteUrl ?? '',
      style: '',
    }),
    ...serverManual(catalog, server),
    sells: server.tools.some(({ operation }) => operation.price !== undefined),
    steps: howToPayTools(catalog, facts),
    clients: payingClients(facts),
    program: facts.protocols.includes('x402') ? TOOL_CLIENT : '',
    docs: addressOf('docs', catalog, '') ?? '',
  })
}
