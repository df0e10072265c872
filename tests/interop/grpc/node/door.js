// RocketMQ's 5.x client for Node: door.js ENDPOINTS FILE writes a line for each thing that it saw.
const fs = require('fs');
const { Producer, SimpleConsumer } = require('rocketmq-client-nodejs');

async function main() {
  const [endpoints, file] = process.argv.slice(2);
  const seen = [];
  const producer = new Producer({ endpoints, namespace: '' });
  await producer.startup();
  await producer.send({ topic: 'door-normal', tag: 'node', keys: ['k1'], body: Buffer.from('from node'), properties: new Map([['mine', 'x']]) });
  for (const body of ['n-0', 'n-1', 'n-2']) {
    await producer.send({ topic: 'door-fifo', body: Buffer.from(body), messageGroup: 'node' });
  }
  const subscriptions = new Map().set('door-normal', 'node');
  const consumer = new SimpleConsumer({ consumerGroup: 'door-node', endpoints, namespace: '', subscriptions, awaitDuration: 8000 });
  await consumer.startup();
  await new Promise(resolve => setTimeout(resolve, 1500));
  for (let look = 0; look < 4 && seen.length === 0; look++) {
    for (const view of await consumer.receive(16, 15000)) {
      seen.push(`${view.body.toString()} ${view.tag} ${view.keys} ${JSON.stringify([...view.properties])} attempt ${view.deliveryAttempt}`);
      await consumer.ack(view);
    }
  }
  fs.writeFileSync(file, seen.sort().join('\n') + '\n');
  process.exit(0);
}

main().catch(error => { console.error(error); process.exit(1); });
