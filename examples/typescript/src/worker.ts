import { fileURLToPath } from 'node:url';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection, Worker } from '@temporalio/worker';
import * as activities from './activities.js';

// TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and so on, as taskbridge reads them too; localhost:7233 without any.
const { connectionOptions, namespace } = loadClientConnectConfig();
const connection = await NativeConnection.connect(connectionOptions);
try {
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: 'typescript',
    workflowsPath: fileURLToPath(new URL('./workflows.js', import.meta.url)),
    activities,
    maxHeartbeatThrottleInterval: '1 second', // or people would see progress every 8 seconds only
  });
  await worker.run();
} finally {
  await connection.close();
}
