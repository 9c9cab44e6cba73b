import type { BuyerCommand } from './buyer-command.ts'
import { systemRuntime } from './buyer-runtime.ts'

/** The commands for buyers, with examples for one of the programs that have them. Each loads its code only when it runs. */
export function buyerCommands(program: 'ratecard' | 'ratecard-buyer'): readonly BuyerCommand[] {
  return [
    {
      name: 'pay',
      summary: 'pay for one call and show the whole exchange',
      operands: ['<url or path>'],
      options: {
        method: { value: 'METHOD', short: 'X', text: 'default: GET, or POST with --data' },
        data: {
          value: 'TEXT|@FILE',
          short: 'd',
          text: 'the body; its type (JSON, form or text) is detected; --header sets another type',
        },
        header: { value: "'NAME: VALUE'", short: 'H', multiple: true, text: 'may be repeated' },
        output: { value: 'FILE', short: 'o', text: 'write the answer to a file, byte for byte' },
        protocol: { value: 'x402|mpp', text: 'how to pay; default: the first one offered' },
        network: {
          value: 'NAME',
          text: 'where to pay, such as base or solana; default: the first one offered that a key is set for',
        },
        scheme: {
          value: 'exact|upto|batch-settlement',
          text: 'how to pay by x402; default: exact where it is offered, else upto',
        },
        deposit: {
          value: 'USD',
          text: 'with --scheme batch-settlement: move this much into the channel when it holds too little',
        },
        max: { value: 'USD', text: 'pay at most this much' },
        anyway: { text: 'send the payment also when the shop says that the call would fail' },
        json: { text: 'print JSON' },
      },
      examples: [
        `${program} pay '/paid/util/workday?country=DE&date=2026-12-23&days=3'`,
        `${program} pay /paid/translate -d '{"text":"Guten Tag"}'`,
        `${program} pay /paid/ocr -d @page.png -H 'Content-Type: image/png' -o page.txt`,
        `PAYER_PRIVATE_KEY=… ${program} pay https://api.example.com/paid/ping --max 0.01`,
        `PAYER_PRIVATE_KEY=… ${program} pay https://api.example.com/paid/ping --scheme batch-settlement --deposit 1 --max 0.01`,
        `SOLANA_PAYER_PRIVATE_KEY=… ${program} pay https://api.example.com/paid/ping --max 0.01`,
        `PAYER_PRIVATE_KEY=… RPC_URL_4217=https://… ${program} pay https://api.example.com/paid/ping --protocol mpp --max 0.01`,
      ],
      run: async (call) => (await import('./pay.ts')).pay(call, systemRuntime),
    },
    {
      name: 'verify',
      summary: 'verify signed receipts, and show what they state',
      operands: ['<receipt or file>'],
      options: {
        answer: { value: 'FILE', text: 'the answer, byte for byte: whether it is the one that was paid for' },
        json: { text: 'print JSON' },
      },
      examples: [
        `${program} pay /paid/ping --json -o answer.json > bill.json`,
        `${program} verify bill.json --answer answer.json`,
      ],
      run: async (call) => (await import('./verify.ts')).verify(call),
    },
    {
      name: 'close',
      summary: 'get back what is left of a channel',
      operands: ['<url>'],
      options: {
        'data-dir': {
          value: 'DIR',
          text: 'where channels are recorded; default: XDG_STATE_HOME/ratecard, or else ~/.local/state/ratecard',
        },
        json: { text: 'print JSON' },
      },
      examples: [`PAYER_PRIVATE_KEY=… ${program} close https://api.example.com/paid/ping`],
      run: async (call) => (await import('./close.ts')).close(call, systemRuntime),
    },
    {
      name: 'mcp',
      summary: 'serve the MCP tools of a shop to a local client, and pay for them within a budget',
      operands: ['<origin or MCP endpoint>'],
      options: {
        'max-per-call': { value: 'USD', text: 'pay at most this much for one call; required' },
        max: { value: 'USD', text: 'spend at most this much at this shop; required' },
        'ask-above': {
          value: 'USD',
          text: 'ask the user before a call that costs more; default: 0.05, where the client can ask',
        },
        protocol: { value: 'x402|mpp', text: 'how to pay; default: the first one offered' },
        network: {
          value: 'NAME',
          text: 'where to pay, such as base or solana; default: the first one offered that a key is set for',
        },
        scheme: {
          value: 'exact|upto|batch-settlement',
          text: 'how to pay by x402; default: batch-settlement where --max allows its deposit, else exact, else upto',
        },
        'data-dir': {
          value: 'DIR',
          text: 'where spending and channels are recorded; default: XDG_STATE_HOME/ratecard, or else ~/.local/state/ratecard',
        },
      },
      examples: [
        `PAYER_PRIVATE_KEY=… ${program} mcp https://api.example.com --max-per-call 0.05 --max 5`,
        `PAYER_PRIVATE_KEY=… ${program} mcp https://api.example.com/mcp/game --max-per-call 0.05 --max 5 --ask-above 0.01`,
      ],
      run: async (call) => (await import('./mcp.ts')).mcp(call, systemRuntime),
    },
  ]
}
