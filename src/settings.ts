/**
 * Every setting of a service, once: its option of `createRatecard`, its environment variable, its default and what it means.
 * The options' types, `.env.example`, the tables of the documentation and the names in messages are made from it
 * (`npm run generate`).
 */
interface Setting {
  /** Its place in the options of `createRatecard`; none: only the command has it. */
  readonly option?: string
  /** Its environment variable; none: only programs set it. `RPC_URL_<chain id>` stands for one of each network. */
  readonly variable?: string
  /** The type of the option in TypeScript. */
  readonly type?: string
  /** Whether the option must be given. */
  readonly required?: true
  /** The value that counts when none is given. */
  readonly default?: string | number
  /** The same in words, where it is not a value. */
  readonly otherwise?: string
  /** A value to show where there is no default. */
  readonly example?: string
  /** One or more sentences, in Markdown. */
  readonly text: string
  readonly group: Group
}

/** The groups in the order in which files and tables list them. */
export const GROUPS = {
  first: 'Address of the service, and who is paid',
  facilitators: 'x402 without a private key: facilitators settle. Lists in order of preference',
  mpp: 'MPP on Tempo',
  receipts: 'Signed receipts',
  process: 'The process',
  stores: 'Stores',
  observation: 'Logs and metrics',
  buyer: 'Only for `ratecard pay` and `ratecard mcp` outside a sandbox; a server does not use it',
  refunds: 'Only for `ratecard payments refund`; a server does not use it',
  program: 'Programs that embed the service',
} as const

export type Group = keyof typeof GROUPS

export const SETTINGS = {
  catalog: {
    group: 'process',
    option: 'catalog',
    variable: 'CATALOG',
    type: 'CatalogPlace',
    required: true,
    default: 'catalog.yaml',
    text: 'Path of the catalog file; in a program also `{ text }`, whose files are read from the working directory.',
  },
  baseUrl: {
    group: 'first',
    option: 'baseUrl',
    variable: 'BASE_URL',
    type: 'string',
    required: true,
    example: 'https://api.example.com',
    text: 'Public origin of the service, without a path. All absolute addresses start with it.',
  },
  basePath: {
    group: 'program',
    option: 'basePath',
    type: 'string',
    otherwise: 'none: the root of its host',
    example: '/shop',
    text: 'Path below which an application mounts the service, such as `/shop`: all its addresses have it after the origin.',
  },
  handlers: {
    group: 'program',
    option: 'handlers',
    type: 'HandlerMap',
    otherwise: 'none',
    text: 'Handlers by the name they have in the catalog. Routes with `upstream` need none.',
  },
  service: {
    group: 'program',
    option: 'service',
    type: 'ServiceDefinition<unknown>',
    otherwise: 'none',
    text: 'What `defineService` returns: its handlers, to which those of `handlers` are added, and its stores. It reads its variables from `secrets`.',
  },
  payTo: {
    group: 'first',
    option: 'payments.x402.payTo',
    variable: 'PAY_TO',
    type: 'string | readonly string[]',
    otherwise: '`payments.pay_to` of the catalog',
    text: 'Addresses that receive the money by x402: one for all EVM networks (`0x…`), one for Solana (base58), or both; in a variable separated by a comma. Their keys are not needed here.',
  },
  signerKeys: {
    group: 'first',
    option: 'payments.x402.signerKeys',
    variable: 'SETTLER_PRIVATE_KEY',
    type: 'readonly string[]',
    otherwise: 'none',
    text: 'Private keys (64 hexadecimal digits) of the accounts that send settlements and pay their gas; in a variable separated by commas. They hold gas money and nothing else.',
  },
  feePayerKeys: {
    group: 'first',
    option: 'payments.x402.feePayerKeys',
    variable: 'SOLANA_FEE_PAYER_KEY',
    type: 'readonly string[]',
    otherwise: 'none',
    text: 'Key pairs of the accounts that pay the fees of settlements on Solana: 64 bytes in base58, or as the JSON array that `solana-keygen` writes; in a variable separated by commas. They hold SOL for fees and nothing else. Offers name the first; keep an earlier one behind it for two minutes.',
  },
  channelKeys: {
    group: 'first',
    option: 'payments.x402.channelKeys',
    variable: 'CHANNEL_AUTHORIZER_KEY',
    type: 'readonly string[]',
    otherwise: 'none: no channels are offered',
    text: 'Private keys that sign claims and refunds of channels (scheme `batch-settlement`); in a variable separated by commas. They need no money. Channels name the address of the first; keep earlier keys behind it until their channels are empty.',
  },
  rpcUrls: {
    group: 'first',
    option: 'payments.x402.rpcUrls',
    variable: 'RPC_URL_8453',
    type: 'Readonly<Record<string, string>>',
    otherwise: 'none',
    text: 'JSON-RPC endpoint of each network of the catalog: `{ base: …, solana: … }`, or a variable of each by its chain id; on Solana `RPC_URL_SOLANA` and `RPC_URL_SOLANA_DEVNET`.',
  },
  allowTestNetworks: {
    group: 'process',
    option: 'payments.allowTestNetworks',
    variable: 'ALLOW_TEST_NETWORKS',
    type: 'boolean',
    default: '0',
    text: 'Whether to sell for the worthless money of test networks. Logs, pages and 402 responses say so; a sandbox needs no permission.',
  },
  facilitators: {
    group: 'facilitators',
    option: 'payments.x402.facilitators',
    variable: 'FACILITATOR_URL',
    type: 'readonly FacilitatorOptions[]',
    otherwise: 'none',
    example: 'https://facilitator.example',
    text: 'Services that settle for you, in order of preference; no key is needed then.',
  },
  schemes: {
    group: 'program',
    option: 'payments.x402.schemes',
    type: 'readonly OpenScheme[]',
    otherwise: 'none',
    text: 'Schemes of x402 of your own, offered after `exact`. See `ratecard/scheme`, which is unstable.',
  },
  facilitatorTokens: {
    group: 'facilitators',
    variable: 'FACILITATOR_TOKEN',
    otherwise: 'none',
    text: 'Bearer tokens of the facilitators, in the same order.',
  },
  cdpKeyId: {
    group: 'facilitators',
    variable: 'CDP_API_KEY_ID',
    otherwise: 'none',
    text: 'Secret API key of the Coinbase Developer Platform, Ed25519 or ECDSA. Its facilitator settles first and lists what you sell.',
  },
  cdpKeySecret: {
    group: 'facilitators',
    variable: 'CDP_API_KEY_SECRET',
    otherwise: 'none',
    text: 'The secret of that key: each request carries a token that is signed for it.',
  },
  cdpUrl: {
    group: 'facilitators',
    variable: 'CDP_FACILITATOR_URL',
    default: 'https://api.cdp.coinbase.com/platform/v2/x402',
    text: 'Another address of that facilitator.',
  },
  mppRecipient: {
    group: 'mpp',
    option: 'payments.mpp.recipient',
    variable: 'MPP_RECIPIENT',
    type: 'string',
    otherwise: 'none: MPP is not offered',
    text: 'Address that receives MPP payments.',
  },
  mppSecretKeys: {
    group: 'mpp',
    option: 'payments.mpp.secretKeys',
    variable: 'MPP_SECRET_KEY',
    type: 'readonly string[]',
    otherwise: 'none',
    text: 'Texts of at least 32 bytes that sign challenges (`openssl rand -hex 32`). The first signs, all are accepted: `current,previous` while you rotate it.',
  },
  mppRpcUrls: {
    group: 'mpp',
    option: 'payments.mpp.rpcUrls',
    type: 'Readonly<Record<string, string>>',
    otherwise: 'none',
    text: 'JSON-RPC endpoints by network: `tempo`, `tempo-moderato`, or `eip155:` and the chain id.',
  },
  receiptKeys: {
    group: 'receipts',
    option: 'payments.receiptKeys',
    variable: 'RECEIPT_PRIVATE_KEY',
    type: 'readonly string[]',
    otherwise: 'none: no receipts are signed',
    text: 'Ed25519 keys of signed receipts (64 hexadecimal digits: `openssl rand -hex 32`), never that of an account. The first signs, all are published: `current,previous` once you have another.',
  },
  environment: {
    group: 'process',
    variable: 'NODE_ENV',
    example: 'production',
    otherwise: 'development',
    text: '`production` refuses the sandbox. The image sets it.',
  },
  port: {
    group: 'process',
    variable: 'PORT',
    default: 4021,
    text: 'Port of the service; 0: any.',
  },
  host: {
    group: 'process',
    variable: 'HOST',
    default: '0.0.0.0',
    text: 'Address that the service listens on.',
  },
  dataDir: {
    group: 'process',
    option: 'dataDir',
    variable: 'DATA_DIR',
    type: 'string',
    default: '.ratecard',
    text: 'Folder for data on this machine: the ledger unless it is in Redis, and kept revisions of the catalog. Never on a network disk.',
  },
  trustProxy: {
    group: 'process',
    option: 'trustProxy',
    variable: 'TRUST_PROXY',
    type: 'boolean',
    default: '0',
    text: 'Whether `X-Forwarded-For` has the address of the caller: only behind a proxy of yours that overwrites it.',
  },
  drainSeconds: {
    group: 'process',
    variable: 'DRAIN_SECONDS',
    default: 5,
    text: 'After SIGTERM, seconds in which `/health` answers 503 and requests are still taken, so that a proxy stops sending new ones.',
  },
  ledger: {
    group: 'stores',
    option: 'ledger',
    variable: 'REDIS_URL',
    type: 'string',
    otherwise: 'LMDB in the data folder',
    example: 'redis://localhost:6379',
    text: 'Where several machines record payments: `redis://…` or `rediss://…`, shared by all with the same payee. Refused without `appendonly yes` and `maxmemory-policy noeviction`.',
  },
  cache: {
    group: 'stores',
    option: 'cache',
    variable: 'CACHE_REDIS_URL',
    type: 'string',
    otherwise: 'the memory of this process; for the command: `REDIS_URL`',
    text: 'Redis of the cache.',
  },
  ledgerUnsafe: {
    group: 'stores',
    option: 'ledgerUnsafe',
    variable: 'LEDGER_UNSAFE',
    type: 'boolean',
    default: '0',
    text: 'Whether to use a Redis that does not allow `CONFIG GET`. You are then responsible for its settings.',
  },
  ledgerReplicas: {
    group: 'stores',
    option: 'ledgerReplicas',
    variable: 'LEDGER_REPLICAS',
    type: 'number',
    default: 0,
    text: 'Replicas of Redis that must have a change before it counts as stored (`WAIT`). When fewer answer, sales stop.',
  },
  secrets: {
    group: 'program',
    option: 'secrets',
    type: 'Secrets',
    otherwise: 'none; for the command: the environment',
    text: 'Credentials that the catalog refers to by name, and the variables of `service`: a map such as `process.env`, or a function.',
  },
  logger: {
    group: 'program',
    option: 'logger',
    type: 'Logger',
    otherwise: '`console`',
    text: 'Takes warnings and errors.',
  },
  onRequest: {
    group: 'program',
    option: 'onRequest',
    type: 'Observe',
    otherwise: 'none',
    text: 'Called once for each request that has been answered: for an access log or metrics.',
  },
  mcpUrls: {
    group: 'program',
    option: 'mcpUrls',
    type: 'Readonly<Record<string, string>>',
    otherwise: '`/mcp/NAME` below the public origin',
    text: 'Origins of MCP servers by their name in the catalog.',
  },
  logLevel: {
    group: 'observation',
    variable: 'LOG_LEVEL',
    default: 'info',
    text: '`debug`, `info`, `warn`, `error` or `silent`. Why a server refuses to start is said at each level.',
  },
  metricsPort: {
    group: 'observation',
    variable: 'METRICS_PORT',
    otherwise: 'none',
    text: 'Port of the metrics, which must not be public.',
  },
  metricsToken: {
    group: 'observation',
    variable: 'METRICS_TOKEN',
    otherwise: 'none',
    text: 'Serves metrics on the public port, to holders of this bearer token.',
  },
  noColor: {
    group: 'observation',
    variable: 'NO_COLOR',
    otherwise: 'none',
    text: 'Any value: no colours in a terminal.',
  },
  forceColor: {
    group: 'observation',
    variable: 'FORCE_COLOR',
    otherwise: 'none',
    text: 'Any value but `0`: colours, and short log lines, although nobody reads them in a terminal.',
  },
  payerKey: {
    group: 'buyer',
    variable: 'PAYER_PRIVATE_KEY',
    otherwise: 'none',
    text: 'Private key of the account that pays on EVM networks.',
  },
  svmPayerKey: {
    group: 'buyer',
    variable: 'SOLANA_PAYER_PRIVATE_KEY',
    otherwise: 'none',
    text: 'Key pair of the account that pays on Solana: 64 bytes in base58, or as the JSON array that `solana-keygen` writes.',
  },
  stateHome: {
    group: 'buyer',
    variable: 'XDG_STATE_HOME',
    otherwise: '`~/.local/state`',
    text: 'Where `ratecard mcp` records what it has spent, in a folder `ratecard`.',
  },
  refundKey: {
    group: 'refunds',
    variable: 'REFUND_PRIVATE_KEY',
    otherwise: 'none',
    text: 'Private key of the account that refunds are sent from, with the token and gas.',
  },
  svmRefundKey: {
    group: 'refunds',
    variable: 'SOLANA_REFUND_PRIVATE_KEY',
    otherwise: 'none',
    text: 'Key pair of the account that refunds on Solana are sent from, with the token and SOL: 64 bytes in base58, or as the JSON array that `solana-keygen` writes.',
  },
  runtime: {
    group: 'program',
    option: 'runtime',
    type: 'Partial<RuntimeOptions>',
    otherwise: 'those of the machine',
    text: 'Sources of time, randomness and HTTP requests; for tests.',
  },
} as const satisfies Readonly<Record<string, Setting>>

export type SettingName = keyof typeof SETTINGS

/** The settings in the order of their groups. */
export function settingsInOrder(): readonly (readonly [SettingName, Setting])[] {
  const all: [string, Setting][] = Object.entries(SETTINGS)
  return Object.keys(GROUPS).flatMap((group) =>
    all.flatMap(([name, setting]) =>
      isSettingName(name) && setting.group === group ? [[name, setting] as const] : [],
    ),
  )
}

function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name)
}
