/** Eight lines that pay for `url`, with a cap on what they spend: the first thing a developer looks for. */
export const CLIENT = [
  "import { wrapFetchWithPayment, x402Client } from '@x402/fetch'",
  "import { ExactEvmScheme } from '@x402/evm/exact/client'",
  "import { privateKeyToAccount } from 'viem/accounts'",
  'const account = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY)',
  "const client = new x402Client().register('eip155:*', new ExactEvmScheme(account))",
  "client.setSpendControls({ maxAmountPerPayment: '$1' })",
  'const pay = wrapFetchWithPayment(fetch, client)',
  'console.log(await (await pay(url)).json())',
].join('\n')
