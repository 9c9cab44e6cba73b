/**
 * A catalog of `count` paid routes with parameters and examples: half at fixed paths, half with a template, and of those
 * half under one common template. Proxies, so that every route can be served without code of its own.
 */
export function generateCatalog(count) {
  const entries = Array.from({ length: count }, (_, index) => entry(index))
  return [
    'catalog: 1',
    'service:',
    '  name: Generated routes',
    "  version: '1.0.0'",
    'payments:',
    '  currency: USD',
    '  x402: { networks: [eip155:8453, eip155:137, eip155:42161, eip155:43114], timeout: 60s }',
    'categories: { generated: Generated }',
    'routes:',
    ...entries,
    'documents:',
    '  health: [/health]',
    '  openapi: [/openapi.json]',
    '  llms: [/llms.txt]',
    '  x402-resources: [/x402-resources]',
    '',
  ].join('\n')
}

function entry(index) {
  const templated = index % 2 === 1
  const path = templated ? templatedPath(index) : `/paid/markets/report-${index}`
  return [
    `  ${path}:`,
    `    price: 0.00${1 + (index % 9)}`,
    `    summary: Returns report ${index} of the shop with figures of the day`,
    `    use_when: You need the figures of report ${index} and know the country.`,
    '    category: generated',
    '    handler: proxy',
    `    upstream: 'http://127.0.0.1:9/reports/${index}${templated ? '/{id}' : ''}'`,
    '    parameters:',
    ...(templated
      ? ['      id: { type: string, maxLength: 40, description: Which item., example: item-7 }']
      : []),
    '      country:',
    '        { type: string, default: US, format: country, description: Country as ISO 3166-1 alpha-2 code., example: DE }',
    `      limit: { type: integer, default: 10, minimum: 1, maximum: ${50 + (index % 100)}, description: How many rows., example: 5 }`,
    '    example: { rows: [{ rank: 1, name: Example, price: 9.75 }], total: 1, currency: USD }',
  ].join('\n')
}

function templatedPath(index) {
  return index % 4 === 1 ? `/paid/items-${index}/{id}` : `/paid/items/{id}/report-${index}`
}
