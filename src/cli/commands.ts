import { buyerCommands } from '../buyer/commands.ts'
import type { Command } from './command.ts'

const CATALOG = { value: 'FILE', text: 'the catalog; default: CATALOG, or else catalog.yaml' }
const HANDLERS = {
  value: 'DIR',
  text: 'folder with your own handlers: DIR/index.js exports "handlers"; default: handlers next to the catalog',
}
const JSON_OUTPUT = { text: 'print JSON' }
const DATA_DIR = { value: 'DIR', text: 'data directory of the server; default: DATA_DIR, or else .ratecard' }
const SANDBOX_DATA = { text: 'read the data of "ratecard serve --sandbox"' }
const STORED = { 'data-dir': DATA_DIR, sandbox: SANDBOX_DATA }
const SINCE = { value: 'TIME', text: 'only from this time on: a date, or an age such as 24h or 7d' }

/** All commands of the program. Each loads its code only when it runs, so that --version and --help stay fast. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'init',
    summary: 'create a project: a catalog, a handler and its test, or a catalog that sells an existing API',
    operands: ['[dir]'],
    options: {
      typescript: { text: 'write the handler and its test in TypeScript' },
      example: { value: 'metered', text: 'a shop that sells answers of a model by what they use' },
      from: { value: 'FILE|URL', text: 'OpenAPI 3 or Swagger 2.0 document of the API to sell, JSON or YAML' },
      price: { value: 'USD', text: 'with --from: price of every call, such as 0.005' },
      include: {
        value: 'PATTERN',
        multiple: true,
        text: "with --from: only these operations, such as '/pets*' or 'GET *', also those about accounts or administration",
      },
      exclude: { value: 'PATTERN', multiple: true, text: 'with --from: not these operations' },
    },
    examples: [
      'ratecard init shop',
      'ratecard init shop --typescript',
      'ratecard init shop --example metered',
      'ratecard init shop --from https://api.example/openapi.json --price 0.001',
    ],
    run: async (call) => (await import('./init.ts')).init(call),
  },
  {
    name: 'serve',
    summary: 'serve a catalog',
    operands: [],
    options: {
      catalog: CATALOG,
      handlers: HANDLERS,
      port: { value: 'N', text: 'port to listen on, 0 for any; default: PORT, or else 4021' },
      sandbox: { text: 'use play money on local chains; needs no configuration' },
      offline: { text: 'answer with invented data instead of querying outside sources; needs --sandbox' },
      watch: { text: 'reload your handlers when their files change, without dropping a request' },
      workers: {
        value: 'N',
        text: 'processes that serve together on one port, or auto: as many as there are cores; default: 1',
      },
      console: {
        value: 'PORT',
        optional: true,
        text: 'pages for you alone on 127.0.0.1: revenue, lost sales, payments; default: any port, and on in a sandbox',
      },
      'data-dir': { value: 'DIR', text: 'where payments are stored; default: DATA_DIR, or else .ratecard' },
      'production-strict': { text: 'refuse to start while a source of a paid route may not be resold' },
    },
    examples: [
      'ratecard serve --sandbox --offline',
      'ratecard serve --sandbox --watch',
      'PAY_TO=0x… SETTLER_PRIVATE_KEY=… RPC_URL_8453=https://… ratecard serve',
    ],
    run: async (call) => (await import('./serve.ts')).serve(call),
  },
  {
    name: 'check',
    summary: 'report every error and warning in a catalog',
    operands: ['[catalog.yaml]'],
    options: { handlers: HANDLERS, json: JSON_OUTPUT },
    examples: ['ratecard check', 'ratecard check shop/catalog.yaml --json'],
    run: async (call) => (await import('./check.ts')).check(call),
  },
  {
    name: 'routes',
    summary: 'list the routes of a catalog with prices and parameters',
    operands: ['[catalog.yaml]'],
    options: { handlers: HANDLERS, json: JSON_OUTPUT },
    examples: ['ratecard routes', "ratecard routes --json | jq '.[].path'"],
    run: async (call) => (await import('./routes.ts')).routes(call),
  },
  {
    name: 'plan',
    summary: 'show how a catalog change affects buyers; exits 2 if a price rises or existing calls break',
    operands: ['[catalog.yaml]'],
    options: {
      against: {
        value: 'FILE, REF or URL',
        text: 'what to compare with: a catalog, a git revision or a running service; default: HEAD',
      },
      json: JSON_OUTPUT,
    },
    examples: [
      'ratecard plan',
      'ratecard plan --against origin/main',
      'ratecard plan --against https://api.example.com',
    ],
    run: async (call) => (await import('./plan.ts')).plan(call),
  },
  {
    name: 'keys new',
    summary: 'make an API key for a customer, show it once and add its digest to the file of the catalog',
    operands: ['<name>'],
    options: { catalog: CATALOG, json: JSON_OUTPUT },
    examples: ['ratecard keys new acme', 'ratecard keys new acme --json | jq -r .key'],
    run: async (call) => (await import('./keys.ts')).newKey(call),
  },
  {
    name: 'keys revoke',
    summary: 'remove the API keys of a customer',
    operands: ['<name>'],
    options: { catalog: CATALOG, json: JSON_OUTPUT },
    examples: ['ratecard keys revoke acme'],
    run: async (call) => (await import('./keys.ts')).revokeKeys(call),
  },
  {
    name: 'keys list',
    summary: 'list the customers with an API key',
    operands: [],
    options: { catalog: CATALOG, json: JSON_OUTPUT },
    examples: ['ratecard keys list'],
    run: async (call) => (await import('./keys.ts')).listKeys(call),
  },
  {
    name: 'revisions',
    summary: 'list the revisions of the catalog that the server has served and kept',
    operands: [],
    options: { 'data-dir': DATA_DIR, json: JSON_OUTPUT },
    examples: ['ratecard revisions'],
    run: async (call) => (await import('./revisions.ts')).revisions(call),
  },
  {
    name: 'rollback',
    summary: 'serve a kept revision in place of the catalog file, until the file changes',
    operands: ['<revision>'],
    options: { catalog: CATALOG, handlers: HANDLERS, 'data-dir': DATA_DIR, json: JSON_OUTPUT },
    examples: ['ratecard rollback 3f9a1c2e7b40'],
    run: async (call) => (await import('./revisions.ts')).rollback(call),
  },
  {
    name: 'new',
    summary: 'add a route: its catalog entry, a handler and a test',
    operands: ['<path>'],
    options: {
      price: { value: 'USD', text: 'price of one call, such as 0.005, or "free"; required' },
      method: {
        value: 'METHOD',
        short: 'X',
        text: 'default: GET; parameters of POST, PUT and PATCH go in a JSON body',
      },
      parameter: {
        value: 'NAME:TYPE',
        multiple: true,
        text: 'a parameter; repeatable. "days:integer=7" has a default, "text:string!" is required',
      },
      summary: { value: 'TEXT', text: 'one line for documents' },
      catalog: CATALOG,
      handlers: { value: 'DIR', text: 'folder for the handler; default: handlers next to the catalog' },
      json: JSON_OUTPUT,
    },
    examples: [
      'ratecard new /paid/util/slug --price 0.002 --parameter text:string!',
      'ratecard new /paid/price/{sku} --price 0.01 --parameter sku:string=A-100 --parameter days:integer=7',
      'ratecard new /paid/translate --method POST --price 0.002 --parameter text:string!',
      'ratecard new /about --price free',
    ],
    run: async (call) => (await import('./new.ts')).addRoute(call),
  },
  {
    name: 'print',
    summary:
      'print a generated document, the catalog’s JSON Schema or an MCP registry entry without a server',
    operands: ['<path, schema or mcp/NAME/server.json>'],
    options: { catalog: CATALOG, handlers: HANDLERS },
    examples: [
      'ratecard print /openapi.json',
      'ratecard print schema > catalog.schema.json',
      'BASE_URL=https://api.example.com ratecard print mcp/game/server.json > server.json',
    ],
    run: async (call) => (await import('./print.ts')).print(call),
  },
  {
    name: 'types',
    summary: 'print TypeScript types for the handlers of a catalog',
    operands: ['[catalog.yaml]'],
    options: {
      engine: { value: 'MODULE', text: 'module to import the types from; default: ratecard/handler' },
      out: { value: 'FILE', text: 'write them to a file, which is replaced atomically; default: stdout' },
    },
    examples: ['ratecard types --out handlers/catalog.d.ts'],
    run: async (call) => (await import('./print.ts')).types(call),
  },
  ...buyerCommands('ratecard'),
  {
    name: 'payments list',
    summary: 'list payments, newest first, with revenue by route, network and day',
    operands: [],
    options: {
      state: { value: 'STATE', text: 'only payments in this state, such as settled or unknown' },
      route: { value: 'OPERATION', text: 'only payments for this operation' },
      payer: { value: 'ADDRESS', text: 'only payments of this payer' },
      since: SINCE,
      limit: { value: 'N', text: 'show at most this many; default: 50' },
      totals: { text: 'show totals only' },
      channels: { text: 'list the channels of buyers instead, and what each of them owes' },
      json: JSON_OUTPUT,
      ...STORED,
    },
    examples: [
      'ratecard payments list --since 24h',
      'ratecard payments list --totals --since 2026-11-01',
      'ratecard payments list --state unknown',
      "ratecard payments list --sandbox --json | jq '.[].payment'",
    ],
    run: async (call) => (await import('./payments/list.ts')).listPayments(call),
  },
  {
    name: 'payments claim',
    summary: 'claim now what the channels of buyers owe, and have it paid out',
    operands: [],
    options: { json: JSON_OUTPUT, catalog: CATALOG, ...STORED },
    examples: [
      'CHANNEL_AUTHORIZER_KEY=… SETTLER_PRIVATE_KEY=… RPC_URL_8453=https://… ratecard payments claim',
    ],
    run: async (call) => (await import('./payments/claim.ts')).claimPayments(call),
  },
  {
    name: 'payments show',
    summary: 'explain one payment: what happened and what to do',
    operands: ['<id>'],
    options: { json: JSON_OUTPUT, ...STORED },
    examples: ['ratecard payments show pay_0a1B2c3D4e5F6g7H8i9J0k'],
    run: async (call) => (await import('./payments/show.ts')).showPayment(call),
  },
  {
    name: 'payments reconcile',
    summary: 'compare the ledger with the chains in both directions; changes nothing',
    operands: [],
    options: {
      since: { value: 'TIME', text: 'compare from this time on; default: 24h' },
      json: JSON_OUTPUT,
      catalog: CATALOG,
      ...STORED,
    },
    examples: [
      'RPC_URL_8453=https://… ratecard payments reconcile',
      'ratecard payments reconcile --since 7d --json',
      'ratecard payments reconcile --sandbox',
    ],
    run: async (call) => (await import('./payments/reconcile.ts')).reconcilePayments(call),
  },
  {
    name: 'payments export',
    summary: 'export every charged payment for accounting, as CSV or JSON',
    operands: [],
    options: {
      json: { text: 'print JSON instead of CSV' },
      since: SINCE,
      until: { value: 'TIME', text: 'only before this time' },
      payer: { value: 'ADDRESS', text: 'only payments of this payer' },
      ...STORED,
    },
    examples: [
      'ratecard payments export --since 2026-10-01 --until 2026-11-01 > october.csv',
      'ratecard payments export --json',
    ],
    run: async (call) => (await import('./payments/export.ts')).exportPayments(call),
  },
  {
    name: 'payments statement',
    summary: 'sum up one month by network and asset: sales, refunds and gas',
    operands: ['<month>'],
    options: {
      csv: { text: 'print CSV' },
      json: JSON_OUTPUT,
      'coin-price': {
        value: 'COIN=USD',
        multiple: true,
        text: 'price of a coin that gas was paid in; repeatable',
      },
      ...STORED,
    },
    examples: [
      'ratecard payments statement 2026-11',
      'ratecard payments statement 2026-11 --csv --coin-price ETH=3021.55 > november.csv',
    ],
    run: async (call) => (await import('./payments/statement.ts')).printStatement(call),
  },
  {
    name: 'payments forget',
    summary: 'delete what a payer has bought: answers at once, records up to their money side',
    operands: ['<payer>'],
    options: {
      before: {
        value: 'TIME',
        text: 'also delete charges from before this time: their accounting period is over',
      },
      json: JSON_OUTPUT,
      ...STORED,
    },
    examples: [
      'ratecard payments export --payer 0x… --json',
      'ratecard payments forget 0x…',
      'ratecard payments forget 0x… --before 3650d',
    ],
    run: async (call) => (await import('./payments/forget.ts')).forgetPayments(call),
  },
  {
    name: 'payments refund',
    summary: 'refund a charged payment to its payer, once; --due: all payments that are owed a refund',
    operands: ['[id]'],
    options: {
      due: { text: 'refund every payment whose work can never be delivered' },
      'dry-run': { text: 'only show what would be sent' },
      max: { value: 'USD', text: 'send nothing if the sum is larger than this' },
      json: JSON_OUTPUT,
      ...STORED,
    },
    examples: [
      'ratecard payments refund --due --dry-run',
      'ratecard payments refund pay_0a1B2c3D4e5F6g7H8i9J0k --sandbox',
      'REFUND_PRIVATE_KEY=… RPC_URL_8453=https://… ratecard payments refund --due --max 5',
      'REFUND_PRIVATE_KEY=… RPC_URL_8453=https://… ratecard payments refund pay_0a1B2c3D4e5F6g7H8i9J0k',
    ],
    run: async (call) => (await import('./payments/refund.ts')).refundPayments(call),
  },
  {
    name: 'payments prune',
    summary: 'delete old records of finished payments; stored answers and open payments are kept',
    operands: [],
    options: {
      before: { value: 'TIME', text: 'delete what is older: a date, or an age such as 90d; required' },
      'dry-run': { text: 'only count what would be deleted' },
      json: JSON_OUTPUT,
      ...STORED,
    },
    examples: [
      'ratecard payments export --until 90d > archive.csv',
      'ratecard payments prune --before 90d --dry-run',
      'ratecard payments prune --before 2026-10-01',
    ],
    run: async (call) => (await import('./payments/prune.ts')).prunePayments(call),
  },
  {
    name: 'ledger backup',
    summary: 'write the records of all payments to a new file, also while servers use the ledger',
    operands: ['<file>'],
    options: { json: JSON_OUTPUT, ...STORED },
    examples: ['ratecard ledger backup "ledger-$(date +%F).backup"'],
    run: async (call) => (await import('./ledger/backup.ts')).backUpLedger(call),
  },
  {
    name: 'ledger restore',
    summary:
      'merge a backup into the ledger, also while servers use it; the further record of each payment wins',
    operands: ['<file>'],
    options: { json: JSON_OUTPUT, ...STORED },
    examples: ['ratecard ledger restore ledger-2026-11-25.backup'],
    run: async (call) => (await import('./ledger/restore.ts')).restoreLedger(call),
  },
  {
    name: 'ledger totals',
    summary:
      'work the daily totals of the console out again from the records, also while servers use the ledger',
    operands: [],
    options: { json: JSON_OUTPUT, ...STORED },
    examples: ['ratecard ledger totals'],
    run: async (call) => (await import('./ledger/totals.ts')).rebuildTotals(call),
  },
  {
    name: 'ledger reopen',
    summary:
      'sell again after the ledger was emptied or replaced: compares it with the chains first, and lists what was lost',
    operands: [],
    options: {
      since: { value: 'TIME', text: 'compare from this time on; default: 24h' },
      unchecked: { text: 'reopen it even if a network cannot be asked' },
      json: JSON_OUTPUT,
      catalog: CATALOG,
      ...STORED,
    },
    examples: ['RPC_URL_8453=https://… ratecard ledger reopen', 'ratecard ledger reopen --since 7d --json'],
    run: async (call) => (await import('./ledger/reopen.ts')).reopenLedger(call),
  },
  {
    name: 'webhooks test',
    summary: 'send a signed test event to each receiver of the catalog, and say what it answers',
    operands: [],
    options: { catalog: CATALOG, json: JSON_OUTPUT },
    examples: ['WEBHOOK_SECRET=whsec_… ratecard webhooks test'],
    run: async (call) => (await import('./webhooks.ts')).testWebhooks(call),
  },
  {
    name: 'stats',
    summary: 'show requests, payments and latency per route over the last seven days, for all processes',
    operands: [],
    options: { json: JSON_OUTPUT, ...STORED },
    examples: ['ratecard stats', "ratecard stats --json | jq '.[] | {name, settled}'"],
    run: async (call) => (await import('./stats.ts')).stats(call),
  },
  {
    name: 'doctor',
    summary:
      'with a URL: check what a running service offers, and its revision; without: call every route once',
    operands: ['[url]'],
    options: {
      sources: { text: 'query every outside source once and list unexpected fields' },
      listing: { text: 'send the requests of registry probes, and report what each registry would reject' },
      production: { text: 'check everything that real payments depend on: addresses, chains, stores, proxy' },
      catalog: CATALOG,
      handlers: HANDLERS,
      json: JSON_OUTPUT,
    },
    examples: [
      'ratecard doctor https://api.example.com --catalog catalog.yaml',
      'ratecard doctor http://localhost:4021 --json',
      'ratecard doctor --listing https://api.example.com',
      'ratecard doctor --production',
      'ratecard doctor --sources',
      'TWITCH_CLIENT_ID=… TWITCH_CLIENT_SECRET=… ratecard doctor',
    ],
    run: async (call) => (await import('./doctor.ts')).doctor(call),
  },
]
